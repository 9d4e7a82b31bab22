//! The statements of nearly every batch, looked up once per batch and not once per use.

use rusqlite::{CachedStatement, Connection};

pub(super) struct Hot<'a> {
    /// A task, unless the tenant has one with this id.
    pub(super) create: CachedStatement<'a>,
    /// What a fence is checked against.
    pub(super) head: CachedStatement<'a>,
    /// Everything that events change, under the fence once more: what the writer remembers is not the truth.
    pub(super) change: CachedStatement<'a>,
    /// A row of the log.
    pub(super) log: CachedStatement<'a>,
}

impl<'a> Hot<'a> {
    pub(super) fn new(db: &'a Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            create: db.prepare_cached(
                "INSERT INTO task (key, tenant, id, context_id, owner, agent, state, seq, epoch, attempts,
                                   lease_node, created, updated, second, snapshot, snapshot_seq)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1, 0, ?9, ?10, ?11, ?12, ?13, ?14)
                 ON CONFLICT (tenant, id) DO NOTHING",
            )?,
            head: db.prepare_cached(
                "SELECT tenant, owner, state, seq, epoch, updated, second, snapshot, snapshot_seq
                 FROM task WHERE key = ?1",
            )?,
            change: db.prepare_cached(
                "UPDATE task SET seq = ?2, state = ?3, updated = ?4, second = ?5, snapshot = ?6, snapshot_seq = ?7
                 WHERE key = ?1 AND epoch = ?8 AND seq = ?9",
            )?,
            log: db.prepare_cached("INSERT INTO log (place, task, seq, body) VALUES (?1, ?2, ?3, ?4)")?,
        })
    }
}
