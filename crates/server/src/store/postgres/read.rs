//! Reads of single tasks and their logs.

use bytes::Bytes;
use nuncio_protocol::{ContextId, TaskId};
use tokio_postgres::{Error, Row};

use super::super::packed::Found;
use super::super::{LogEvent, Scope, Seq, State, StoreError, TaskKey, TaskRow};
use super::error::At;
use super::pool::Pool;
use super::text::{escape, realm, scope, unescape};
use super::{limit_of, number};

/// The columns of a [`TaskRow`], for `task AS t`: with its snapshot, and whether the node that writes it is alive. These
/// are subqueries and not joins, so that each is one look however small its table was when the statement was planned.
pub(super) const COLUMNS: &str = "t.key, t.tenant, t.owner, t.id, t.context_id, t.agent, t.state, t.seq, t.epoch, \
     t.attempts, (SELECT s.body FROM snapshot AS s WHERE s.task = t.key), t.snapshot_seq, t.created, t.updated, \
     t.lease_node, EXISTS (SELECT FROM node AS n WHERE n.name = t.lease_node AND n.until > clock_timestamp())";

/// A task from the columns that begin at `at`.
pub(super) fn row_at(row: &Row, at: usize) -> Result<TaskRow, Error> {
    let text = |column: usize| row.try_get::<_, &str>(at + column).map(unescape);
    let node = text(14)?;
    let alive: bool = row.try_get(at + 15)?;
    Ok(TaskRow {
        key: TaskKey(row.try_get(at)?),
        scope: Scope { tenant: text(1)?.into(), owner: text(2)?.into() },
        id: TaskId::from(&*text(3)?),
        context_id: ContextId::from(&*text(4)?),
        agent: text(5)?.into(),
        state: state(row, at + 6)?,
        seq: count(row, at + 7)?,
        epoch: row.try_get(at + 8)?,
        attempts: row.try_get::<_, i32>(at + 9)?.cast_unsigned(),
        leased: !node.is_empty(),
        writer: alive.then(|| node.into()),
        snapshot: row.try_get::<_, Option<&[u8]>>(at + 10)?.map(Bytes::copy_from_slice),
        snapshot_seq: count(row, at + 11)?,
        created: row.try_get(at + 12)?,
        updated: row.try_get(at + 13)?,
    })
}

pub(super) fn row(row: &Row) -> Result<TaskRow, Error> {
    row_at(row, 0)
}

pub(super) fn state(row: &Row, column: usize) -> Result<State, Error> {
    // Written from a byte.
    Ok(State(u8::try_from(row.try_get::<_, i16>(column)?).unwrap_or_default()))
}

pub(super) fn count(row: &Row, column: usize) -> Result<u64, Error> {
    Ok(row.try_get::<_, i64>(column)?.cast_unsigned())
}

pub(super) fn bytes(row: &Row, column: usize) -> Result<Bytes, Error> {
    Ok(Bytes::copy_from_slice(row.try_get(column)?))
}

/// Makes values of rows.
pub(super) fn all<T>(at: &At, rows: &[Row], read: impl Fn(&Row) -> Result<T, Error>) -> Result<Vec<T>, StoreError> {
    rows.iter().map(read).collect::<Result<_, _>>().map_err(|error| at.sql(&error))
}

pub(super) async fn task(pool: &Pool, at: &At, of: &Scope, id: &TaskId) -> Result<Option<TaskRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM task AS t WHERE t.id = $1 AND t.realm = $2 AND t.scope = $3");
    let rows = pool.rows(&sql, &[&escape(id.as_str()), &realm(&of.tenant), &scope(of)]).await?;
    Ok(all(at, &rows, row)?.pop())
}

pub(super) async fn task_by_key(pool: &Pool, at: &At, key: TaskKey) -> Result<Option<TaskRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM task AS t WHERE t.key = $1");
    let rows = pool.rows(&sql, &[&key.0]).await?;
    Ok(all(at, &rows, row)?.pop())
}

/// Rows of the log from the one on that holds the event with this number.
pub(super) const EVENTS: &str = "\
SELECT seq, body FROM event
WHERE task = $1 AND seq >= coalesce((SELECT max(seq) FROM event WHERE task = $1 AND seq <= $2), 0)
ORDER BY seq LIMIT $3";

/// How many rows are read at once: at least one event each, so never too few for a limit, but perhaps too many bytes.
const ROWS: usize = 64;

pub(super) async fn events(
    pool: &Pool,
    at: &At,
    task: TaskKey,
    after: Seq,
    limit: usize,
    room: usize,
) -> Result<Vec<LogEvent>, StoreError> {
    let mut found = Found::new(after, limit, room);
    let mut next = after.saturating_add(1);
    // A narrow reader wants the next few; a wide one gets more at a time.
    let mut rows = limit.min(room / 1024 + 1).clamp(1, ROWS);
    while !found.full() {
        let some = pool.rows(EVENTS, &[&task.0, &number(next), &limit_of(rows)]).await?;
        let before = found.events.len();
        for row in &some {
            let taken = count(row, 0).and_then(|seq| Ok((seq, bytes(row, 1)?)));
            let (seq, body) = taken.map_err(|error| at.sql(&error))?;
            found.take(seq, body, None).map_err(|error| at.failed(error))?;
        }
        if some.len() < rows || found.events.len() == before {
            break;
        }
        next = found.events.last().map_or(next, |last| last.seq + 1);
        rows = ROWS;
    }
    Ok(found.events)
}

pub(super) async fn messages(pool: &Pool, at: &At, task: TaskKey) -> Result<Vec<(Seq, Bytes)>, StoreError> {
    let rows = pool.rows("SELECT seq, body FROM inbox WHERE task = $1 ORDER BY seq", &[&task.0]).await?;
    all(at, &rows, |row| Ok((count(row, 0)?, bytes(row, 1)?)))
}
