-- A task: one short row, rewritten by every batch of its events. Whatever is long lives in `log`.
-- A place that is not yet known is the largest number there is: it takes more room than the one that
-- replaces it, so that a row does not grow out of its page.
CREATE TABLE task (
    key          INTEGER PRIMARY KEY, -- the place of its first event
    tenant       TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    context_id   TEXT    NOT NULL,
    owner        TEXT    NOT NULL,
    agent        TEXT    NOT NULL,
    state        INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    epoch        INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    lease_node   TEXT    NOT NULL,
    created      INTEGER NOT NULL,
    updated      INTEGER NOT NULL,
    second       INTEGER NOT NULL, -- the place of its second event, which may be that of the first
    snapshot     INTEGER NOT NULL, -- the place of its snapshot, which may be that of the first event
    snapshot_seq INTEGER NOT NULL
) STRICT;

-- What tells two tasks apart comes first, so that a place is found by one comparison at a time.
CREATE UNIQUE INDEX task_by_id ON task (id, tenant);

-- Submitted (1) and working (2) tasks: few, and gone from here when their turn ends. The indexes
-- of the many others are thus written once per turn, and a listing is a walk through each kind.
CREATE INDEX task_active ON task (tenant, owner, updated, id, state, context_id) WHERE state < 3;

-- `state` comes last so that counts under a filter read the index alone.
CREATE INDEX task_by_time ON task (tenant, owner, updated, id, state) WHERE state > 2;
CREATE INDEX task_by_context ON task (context_id, tenant, owner, updated, id, state) WHERE state > 2;

-- Completed (3) is what nearly every task becomes; without those this index stays small and pages
-- through the rare states.
CREATE INDEX task_by_state ON task (state, tenant, owner, updated, id) WHERE state > 3;

-- Everything long, in the order of its arrival, so that a batch fills the last page and not one page
-- per running task. A row holds what one batch brought of one task: events from `seq` on, each behind
-- its length in four bytes; or, with `seq` 0, a snapshot: the whole task where a turn ended or rests.
-- Rows whose place `task` knows need no index, which is all that a short task has: event 1 stands
-- at the task's key, alone or with what the task came with: a snapshot, before it and with the highest
-- bit of its length set, and further events.
CREATE TABLE log (
    place INTEGER PRIMARY KEY,
    task  INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    body  BLOB    NOT NULL
) STRICT;

CREATE UNIQUE INDEX log_by_task ON log (task, seq) WHERE seq > 2;

-- The callers' messages after the first, under the number of the event that each came with.
CREATE TABLE inbox (
    task INTEGER NOT NULL,
    seq  INTEGER NOT NULL,
    at   INTEGER NOT NULL,
    body BLOB    NOT NULL,
    PRIMARY KEY (task, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
    tenant TEXT    NOT NULL,
    owner  TEXT    NOT NULL,
    key    TEXT    NOT NULL,
    task   INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_by_age ON idempotency (at);

CREATE TABLE push (
    task       INTEGER NOT NULL,
    id         TEXT    NOT NULL,
    body       BLOB    NOT NULL,
    version    TEXT    NOT NULL,
    acked      INTEGER NOT NULL,
    attempts   INTEGER NOT NULL,
    due        INTEGER,
    last_error TEXT,
    PRIMARY KEY (task, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX push_by_due ON push (due) WHERE due IS NOT NULL;

-- How many tasks each caller has in each state: the totals of a listing without counting.
CREATE TABLE tally (
    tenant TEXT    NOT NULL,
    owner  TEXT    NOT NULL,
    state  INTEGER NOT NULL,
    n      INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, state)
) STRICT, WITHOUT ROWID;

-- Trimmed tasks whose events are still to be removed, a bounded number at a time.
CREATE TABLE trash (
    task INTEGER PRIMARY KEY
) STRICT;

-- Single numbers: `trimmed` is the largest key ever trimmed, so that no key is used twice;
-- `checked` is written to see whether writing works.
CREATE TABLE mark (
    name  TEXT    NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
