//! Pages of tasks: each filter walks an index that is in listing order already.

use rusqlite::Connection;
use rusqlite::types::Value;

use super::super::{ListPage, ListQuery, State};
use super::{limit_of, read};

/// The one state that the index `task_by_state` leaves out.
const COMPLETED: State = State(3);

/// A page and its total, from one moment.
pub(super) fn list(db: &Connection, query: &ListQuery) -> rusqlite::Result<ListPage> {
    let moment = db.unchecked_transaction()?;
    let total = total(&moment, query)?;
    let mut tasks = Vec::new();
    if total > 0 {
        let (sql, values) = page_sql(query);
        let mut select = moment.prepare_cached(&sql)?;
        let rows = select.query_map(rusqlite::params_from_iter(values), read::row)?;
        tasks = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    }
    moment.finish()?;
    let more = tasks.len() > query.limit;
    tasks.truncate(query.limit);
    Ok(ListPage { tasks, total, more })
}

fn total(db: &Connection, query: &ListQuery) -> rusqlite::Result<u64> {
    let counted = if query.context_id.is_none() && query.since.is_none() {
        let mut sql = String::from("SELECT ifnull(sum(n), 0) FROM tally WHERE tenant = ? AND owner = ?");
        let mut values = scope(query);
        if let Some(state) = query.state {
            sql.push_str(" AND state = ?");
            values.push(state.0.into());
        }
        (sql, values)
    } else {
        let (filter, values) = conditions(query, "");
        (format!("SELECT count(*) FROM task AS t {filter}"), values)
    };
    let mut select = db.prepare_cached(&counted.0)?;
    select.query_row(rusqlite::params_from_iter(counted.1), |row| row.get(0)).map(i64::cast_unsigned)
}

/// A page and the task behind it.
pub(super) fn page_sql(query: &ListQuery) -> (String, Vec<Value>) {
    let (filter, mut values) = conditions(query, "LEFT JOIN snapshot AS s ON s.task = t.key");
    let mut sql = format!("SELECT {} FROM task AS t {filter}", read::COLUMNS);
    if let Some(after) = &query.after {
        sql.push_str(" AND (t.updated, t.id) < (?, ?)");
        values.push(after.updated.into());
        values.push(after.id.as_str().to_owned().into());
    }
    sql.push_str(" ORDER BY t.updated DESC, t.id DESC LIMIT ?");
    values.push(limit_of(query.limit.saturating_add(1)).into());
    (sql, values)
}

/// Which index to walk and what must hold. Without statistics SQLite would only guess the index.
fn conditions(query: &ListQuery, join: &str) -> (String, Vec<Value>) {
    let rare = query.state.filter(|state| query.context_id.is_none() && *state != COMPLETED);
    let index = match (&query.context_id, rare) {
        (Some(_), _) => "task_by_context",
        (None, Some(_)) => "task_by_state",
        (None, None) => "task_by_time",
    };
    let mut sql = format!("INDEXED BY {index} {join} WHERE t.tenant = ? AND t.owner = ?");
    let mut values = scope(query);
    if let Some(context) = &query.context_id {
        sql.push_str(" AND t.context_id = ?");
        values.push(context.as_str().to_owned().into());
    }
    if let Some(state) = query.state {
        sql.push_str(" AND t.state = ?");
        values.push(state.0.into());
    }
    if rare.is_some() {
        sql.push_str(" AND t.state <> 3");
    }
    if let Some(since) = query.since {
        sql.push_str(" AND t.updated >= ?");
        values.push(since.into());
    }
    (sql, values)
}

fn scope(query: &ListQuery) -> Vec<Value> {
    vec![query.scope.tenant.to_string().into(), query.scope.owner.to_string().into()]
}
