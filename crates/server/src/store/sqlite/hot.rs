//! The statements of nearly every batch, prepared once.

use rusqlite::{Connection, Statement};

pub(super) struct Hot<'a> {
    pub(super) begin: Statement<'a>,
    pub(super) commit: Statement<'a>,
    pub(super) rollback: Statement<'a>,
    /// A task, unless the tenant has one with this id.
    pub(super) create: Statement<'a>,
    /// What a fence is checked against.
    pub(super) head: Statement<'a>,
    /// Everything that events change, under the fence once more: what the writer remembers is not the truth.
    pub(super) change: Statement<'a>,
    /// A row of the log.
    pub(super) log: Statement<'a>,
    /// How many tasks a caller has in a state.
    pub(super) tally: Statement<'a>,
    /// The same for the first of them.
    pub(super) tally_first: Statement<'a>,
}

impl<'a> Hot<'a> {
    pub(super) fn new(db: &'a Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            begin: db.prepare("BEGIN IMMEDIATE")?,
            commit: db.prepare("COMMIT")?,
            rollback: db.prepare("ROLLBACK")?,
            create: db.prepare(
                // An empty text comes with an address that nobody may read, and to compare nothing with what is there
                // costs some processors eighty nanoseconds, twice in each of some twenty steps down an index. A text
                // that SQLite puts together has an address of its own.
                "INSERT INTO task (key, tenant, id, context_id, owner, agent, state, seq, epoch, attempts,
                                   lease_node, created, updated, second, snapshot, snapshot_seq)
                 VALUES (?1, ?2 || '', ?3, ?4, ?5 || '', ?6, ?7, ?8, 1, 0, ?9, ?10, ?11, ?12, ?13, ?14)
                 ON CONFLICT (tenant, id) DO NOTHING",
            )?,
            head: db.prepare(
                "SELECT tenant, owner, state, seq, epoch, updated, second, snapshot, snapshot_seq
                 FROM task WHERE key = ?1",
            )?,
            change: db.prepare(
                "UPDATE task SET seq = ?2, state = ?3, updated = ?4, second = ?5, snapshot = ?6, snapshot_seq = ?7
                 WHERE key = ?1 AND epoch = ?8 AND seq = ?9",
            )?,
            log: db.prepare("INSERT INTO log (place, task, seq, body) VALUES (?1, ?2, ?3, ?4)")?,
            tally: db.prepare("UPDATE tally SET n = n + ?4 WHERE tenant = ?1 AND owner = ?2 AND state = ?3")?,
            tally_first: db.prepare("INSERT INTO tally (tenant, owner, state, n) VALUES (?1, ?2, ?3, ?4)")?,
        })
    }
}
