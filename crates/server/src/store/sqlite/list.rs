//! Pages of tasks: each filter walks one or two indexes that are in listing order already.

use bytes::Bytes;
use rusqlite::Connection;
use rusqlite::types::Value;

use super::super::{ListPage, ListQuery, TaskRow};
use super::{limit_of, read};

/// Which tasks an index holds, in the words of its definition.
struct Walk {
    index: &'static str,
    holds: &'static str,
}

const ACTIVE: Walk = Walk { index: "task_active", holds: "t.state < 3" };
const BY_TIME: Walk = Walk { index: "task_by_time", holds: "t.state > 2" };
const BY_CONTEXT: Walk = Walk { index: "task_by_context", holds: "t.state > 2" };
const BY_STATE: Walk = Walk { index: "task_by_state", holds: "t.state > 3" };

/// The walks that together meet every task that the query asks for, and none of them twice.
fn walks(query: &ListQuery) -> Vec<Walk> {
    let settled = if query.context_id.is_some() { BY_CONTEXT } else { BY_TIME };
    match query.state {
        None => vec![ACTIVE, settled],
        Some(state) if state.0 < 3 => vec![ACTIVE],
        Some(state) if state.0 > 3 && query.context_id.is_none() => vec![BY_STATE],
        Some(_) => vec![settled],
    }
}

/// A page and its total, from one moment.
pub(super) fn list(db: &Connection, query: &ListQuery) -> rusqlite::Result<ListPage> {
    let moment = db.unchecked_transaction()?;
    let total = total(&moment, query)?;
    let mut tasks: Vec<TaskRow> = Vec::new();
    if total > 0 {
        for (sql, values) in page_sql(query) {
            let mut select = moment.prepare_cached(&sql)?;
            let mut bytes = 0;
            for row in select.query_map(rusqlite::params_from_iter(values), read::row)? {
                let row = row?;
                // The other walks only add to what is before it.
                let is_beyond = bytes > query.bytes;
                bytes += row.snapshot.as_ref().map_or(0, Bytes::len);
                tasks.push(row);
                if is_beyond {
                    break;
                }
            }
        }
    }
    moment.finish()?;
    tasks.sort_by(|a, b| (b.updated, &b.id).cmp(&(a.updated, &a.id)));
    Ok(ListPage::of(tasks, total, query))
}

fn total(db: &Connection, query: &ListQuery) -> rusqlite::Result<u64> {
    if query.context_id.is_none() && query.since.is_none() {
        return tallied(db, query);
    }
    let mut total = 0;
    for walk in walks(query) {
        let (filter, values) = conditions(query, &walk, "");
        total += count(db, &format!("SELECT count(*) FROM task AS t {filter}"), values)?;
    }
    Ok(total)
}

fn tallied(db: &Connection, query: &ListQuery) -> rusqlite::Result<u64> {
    let mut sql = String::from("SELECT ifnull(sum(n), 0) FROM tally WHERE tenant = ? AND owner = ?");
    let mut values = scope(query);
    if let Some(state) = query.state {
        sql.push_str(" AND state = ?");
        values.push(state.0.into());
    }
    count(db, &sql, values)
}

fn count(db: &Connection, sql: &str, values: Vec<Value>) -> rusqlite::Result<u64> {
    let mut select = db.prepare_cached(sql)?;
    select.query_row(rusqlite::params_from_iter(values), |row| row.get(0)).map(i64::cast_unsigned)
}

/// For each walk, a page and the task behind it.
pub(super) fn page_sql(query: &ListQuery) -> Vec<(String, Vec<Value>)> {
    walks(query).iter().map(|walk| walk_sql(query, walk)).collect()
}

fn walk_sql(query: &ListQuery, walk: &Walk) -> (String, Vec<Value>) {
    let (filter, mut values) = conditions(query, walk, read::SNAPSHOT);
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
fn conditions(query: &ListQuery, walk: &Walk, join: &str) -> (String, Vec<Value>) {
    let Walk { index, holds } = walk;
    // The empty texts: see `Hot::create`.
    let mut sql = format!("INDEXED BY {index} {join} WHERE t.tenant = ? || '' AND t.owner = ? || '' AND {holds}");
    let mut values = scope(query);
    if let Some(context) = &query.context_id {
        sql.push_str(" AND t.context_id = ?");
        values.push(context.as_str().to_owned().into());
    }
    if let Some(state) = query.state {
        sql.push_str(" AND t.state = ?");
        values.push(state.0.into());
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
