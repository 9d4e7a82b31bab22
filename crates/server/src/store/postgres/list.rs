//! Pages of tasks: each filter walks one or two indexes that are in listing order already.

use tokio_postgres::types::ToSql;

use super::super::{ListPage, ListQuery, StoreError};
use super::error::At;
use super::pool::Pool;
use super::text::{context, escape, scope, who};
use super::{limit_of, read};

/// Values of a statement in the making.
#[derive(Default)]
struct Values(Vec<Box<dyn ToSql + Sync + Send>>);

impl Values {
    /// The placeholder of one more value.
    fn add(&mut self, value: impl ToSql + Sync + Send + 'static) -> String {
        self.0.push(Box::new(value));
        format!("${}", self.0.len())
    }
}

/// A page and its total, from one moment: one statement.
pub(super) async fn list(pool: &Pool, at: &At, query: &ListQuery) -> Result<ListPage, StoreError> {
    let (sql, values) = sql(query);
    let params: Vec<&(dyn ToSql + Sync)> = values.0.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
    let rows = pool.rows(&sql, &params).await?;
    let total = rows.first().map(|row| read::count(row, 0)).transpose().map_err(|error| at.sql(&error))?;
    let found = read::all(at, &rows, |row| match row.try_get::<_, Option<i64>>(1)? {
        None => Ok(None),
        Some(_) => read::row_at(row, 1).map(Some),
    })?;
    Ok(ListPage::of(found.into_iter().flatten(), total.unwrap_or_default(), query))
}

/// Which tasks a partial index holds, in the words of its definition.
const ACTIVE: &str = "t.state < 3";
const SETTLED: &str = "t.state > 2";
const RARE: &str = "t.state > 3";

/// The walks that together meet every task that the query asks for, and none of them twice.
fn walks(query: &ListQuery) -> Vec<&'static str> {
    match query.state {
        None => vec![ACTIVE, SETTLED],
        Some(state) if state.0 < 3 => vec![ACTIVE],
        Some(state) if state.0 > 3 && query.context_id.is_none() => vec![RARE],
        Some(_) => vec![SETTLED],
    }
}

/// The statement of a query.
#[cfg(test)]
pub(super) fn sql_of(query: &ListQuery) -> String {
    sql(query).0
}

fn sql(query: &ListQuery) -> (String, Values) {
    let mut values = Values::default();
    let total = total(query, &mut values);
    let pages: Vec<String> = walks(query).into_iter().map(|walk| page(query, walk, &mut values)).collect();
    let limit = values.add(limit_of(query.limit.saturating_add(1)));
    let bytes = values.add(i64::try_from(query.bytes).unwrap_or(i64::MAX));
    let columns = read::COLUMNS;
    // The task behind the last one is read as well: it says that more follow.
    let sql = format!(
        "SELECT total.n, {columns} FROM (SELECT ({total}) AS n) AS total
         LEFT JOIN LATERAL (
             SELECT * FROM (
                 SELECT walk.*, sum((SELECT octet_length(s.body) FROM snapshot AS s WHERE s.task = walk.key)) OVER (
                     ORDER BY updated DESC, id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING
                 ) AS before
                 FROM (SELECT * FROM ({}) AS walk ORDER BY updated DESC, id DESC LIMIT {limit}) AS walk
             ) AS walk WHERE coalesce(before, 0) <= {bytes}
         ) AS t ON true ORDER BY t.updated DESC, t.id DESC",
        pages.join(" UNION ALL ")
    );
    (sql, values)
}

fn total(query: &ListQuery, values: &mut Values) -> String {
    if query.context_id.is_none() && query.since.is_none() {
        let of = values.add(scope(&query.scope));
        let state = query.state.map(|state| format!(" AND state = {}", values.add(i16::from(state.0))));
        return format!("SELECT coalesce(sum(n), 0)::int8 FROM tally WHERE scope = {of}{}", state.unwrap_or_default());
    }
    let counts = walks(query).into_iter().map(|walk| {
        let filter = conditions(query, walk, values);
        format!("(SELECT count(*) FROM task AS t WHERE {filter})")
    });
    format!("SELECT {}", counts.collect::<Vec<_>>().join(" + "))
}

/// What a walk brings to the page, and the task behind it.
fn page(query: &ListQuery, walk: &str, values: &mut Values) -> String {
    let mut filter = conditions(query, walk, values);
    if let Some(after) = &query.after {
        let (updated, id) = (values.add(after.updated), values.add(escape(after.id.as_str()).into_owned()));
        filter += &format!(" AND (t.updated, t.id) < ({updated}, {id})");
    }
    let limit = values.add(limit_of(query.limit.saturating_add(1)));
    format!("(SELECT t.* FROM task AS t WHERE {filter} ORDER BY t.updated DESC, t.id DESC LIMIT {limit})")
}

fn conditions(query: &ListQuery, walk: &str, values: &mut Values) -> String {
    let mut sql = match &query.context_id {
        Some(id) => format!("t.context = {} AND {walk}", values.add(context(&query.scope, id.as_str()))),
        None if walk == ACTIVE => {
            let (who, of) = (values.add(who(&query.scope.owner)), values.add(scope(&query.scope)));
            format!("t.who = {who} AND t.scope = {of} AND {walk}")
        }
        None => format!("t.scope = {} AND {walk}", values.add(scope(&query.scope))),
    };
    if let Some(state) = query.state {
        sql += &format!(" AND t.state = {}", values.add(i16::from(state.0)));
    }
    if let Some(since) = query.since {
        sql += &format!(" AND t.updated >= {}", values.add(since));
    }
    sql
}
