-- Names are text as people can read it; a NUL, which PostgreSQL cannot hold, is escaped. What an index needs of a name
-- that may be long is a part of its hash: `scope` of tenant and owner, `context` of both and the context, `realm` of the
-- tenant, `who` of the owner.

-- A task: one short row, rewritten by every batch of its events. Nothing that changes with every event is in an index,
-- and a part of each page is kept free, so that such a change touches neither an index nor another page.
CREATE TABLE task (
    key          int8 PRIMARY KEY,
    scope        uuid NOT NULL,
    context      uuid NOT NULL,
    realm        int8 NOT NULL,
    who          int8 NOT NULL,
    seq          int8 NOT NULL,
    epoch        int8 NOT NULL,
    ticket       int8 NOT NULL DEFAULT 0, -- of the last claim, by which whoever made it knows it again
    snapshot_seq int8 NOT NULL,
    created      int8 NOT NULL,
    updated      int8 NOT NULL,
    attempts     int4 NOT NULL DEFAULT 0,
    state        int2 NOT NULL,
    was          int2 NOT NULL, -- the state before the last change
    lease_node   text COLLATE "C" NOT NULL,
    tenant       text COLLATE "C" NOT NULL,
    owner        text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    context_id   text COLLATE "C" NOT NULL,
    agent        text COLLATE "C" NOT NULL
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

CREATE UNIQUE INDEX task_by_id ON task (id, realm);

-- Submitted (1) and working (2) tasks: few beside the others, and gone from here when their turn ends; with them those
-- whose turn waits for an answer.
CREATE INDEX task_active ON task (who, scope, updated, id) WHERE state < 3 OR lease_node <> '';
CREATE INDEX task_queue ON task (context, created, key) WHERE state < 3;

-- One turn at a time in a context; and whatever a node holds, or waits for one.
CREATE UNIQUE INDEX task_turn ON task (context) WHERE lease_node <> '';
CREATE INDEX task_leased ON task (lease_node, created, key) WHERE state < 3 OR lease_node <> '';

CREATE INDEX task_by_time ON task (scope, updated, id) WHERE state > 2;
CREATE INDEX task_by_context ON task (context, updated, id) WHERE state > 2;
-- Completed (3) is what nearly every task becomes; this one is for the rare states.
CREATE INDEX task_by_state ON task (scope, state, updated, id) WHERE state > 3;

-- A row holds what one batch brought of one task: events from `seq` on, each behind its length in four bytes. Rows are
-- made to fit into a page; what does not fit is not compressed, because that costs more than it saves.
CREATE TABLE event (
    task int8  NOT NULL,
    seq  int8  NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (task, seq)
) WITH (toast_tuple_target = 8160, autovacuum_vacuum_insert_scale_factor = 0.1);
ALTER TABLE event ALTER COLUMN body SET STORAGE EXTERNAL;

-- The whole task where a turn ended or rests, apart from `task`, so that no event rewrites it.
CREATE TABLE snapshot (
    task int8  PRIMARY KEY,
    body bytea NOT NULL
) WITH (toast_tuple_target = 8160);
ALTER TABLE snapshot ALTER COLUMN body SET STORAGE EXTERNAL;

-- The callers' messages after the first, under the number of the event that each came with.
CREATE TABLE inbox (
    task int8  NOT NULL,
    seq  int8  NOT NULL,
    at   int8  NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (task, seq)
);

-- `digest` is of the caller's key; a use before `since` was forgotten when this one was made.
CREATE TABLE idempotency (
    scope  uuid  NOT NULL,
    digest bytea NOT NULL,
    task   int8  NOT NULL,
    seq    int8  NOT NULL,
    at     int8  NOT NULL,
    since  int8  NOT NULL,
    PRIMARY KEY (scope, digest)
);
CREATE INDEX idempotency_by_age ON idempotency (at);

-- `node` has it in hand; nobody, if empty.
CREATE TABLE push (
    task       int8  NOT NULL,
    acked      int8  NOT NULL,
    epoch      int8  NOT NULL,
    due        int8,
    since      int8,
    dead_from  int8,
    dead_count int8  NOT NULL,
    dead_at    int8,
    attempts   int4  NOT NULL,
    told       int2,
    id         text COLLATE "C" NOT NULL,
    node       text COLLATE "C" NOT NULL,
    version    text  NOT NULL,
    last_error text,
    body       bytea NOT NULL,
    PRIMARY KEY (task, id)
) WITH (fillfactor = 75);
CREATE INDEX push_by_due ON push (node, due, task, id) WHERE due IS NOT NULL;
CREATE INDEX push_pending ON push (since) WHERE due < 9223372036854775807;
CREATE INDEX push_by_dead ON push (dead_at, task, id) WHERE dead_at IS NOT NULL;

-- How many tasks each caller has in each state: the totals of a listing without counting. A connection that writes has
-- a slot of its own, because a row that all of them changed would make them wait for each other.
CREATE TABLE tally (
    scope uuid NOT NULL,
    state int2 NOT NULL,
    slot  int2 NOT NULL,
    n     int8 NOT NULL,
    PRIMARY KEY (scope, state, slot)
) WITH (fillfactor = 50);

-- What agents remember of conversations. `digest` is of context and agent.
CREATE TABLE session (
    scope      uuid  NOT NULL,
    digest     bytea NOT NULL,
    at         int8  NOT NULL,
    context_id text  NOT NULL,
    agent      text  NOT NULL,
    native     text,
    workspace  text,
    PRIMARY KEY (scope, digest)
);
CREATE INDEX session_by_age ON session (at);

-- The servers. One is alive until then; `was` is what it said before.
CREATE TABLE node (
    name  text COLLATE "C" PRIMARY KEY,
    until timestamptz NOT NULL,
    was   timestamptz
) WITH (fillfactor = 50);

-- Tasks that somebody wants to end; a row goes when its task is over.
CREATE TABLE cancel (
    task int8 PRIMARY KEY,
    at   timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Messages for tasks that another node writes: `taken` with this event.
CREATE TABLE letter (
    id      int8  PRIMARY KEY,
    task    int8  NOT NULL,
    at      int8  NOT NULL,
    since   int8,
    taken   int8,
    key     text,
    message bytea NOT NULL
);
CREATE INDEX letter_by_task ON letter (task);
CREATE INDEX letter_open ON letter (id) WHERE taken IS NULL;
CREATE INDEX letter_by_age ON letter (at);

-- What callers have used up of something that is limited, until when; and how much the last one got. Of no worth after a
-- crash.
CREATE UNLOGGED TABLE quota (
    who   bytea PRIMARY KEY,
    until int8 NOT NULL,
    at    int8 NOT NULL,
    got   int8 NOT NULL
) WITH (fillfactor = 50);

-- Trimmed tasks whose events are still to be removed, a bounded number at a time.
CREATE TABLE trash (
    task int8 PRIMARY KEY
);

-- Contents of artifacts that are too large for the log, each once, in pieces at its place. One without a hash is being
-- written.
CREATE TABLE content (
    place  int8  PRIMARY KEY,
    sha256 bytea UNIQUE,
    size   int8  NOT NULL DEFAULT 0,
    at     timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX content_unfinished ON content (at) WHERE sha256 IS NULL;

CREATE TABLE piece (
    place int8  NOT NULL,
    n     int4  NOT NULL,
    body  bytea NOT NULL,
    PRIMARY KEY (place, n)
);
ALTER TABLE piece ALTER COLUMN body SET STORAGE EXTERNAL;

-- Which task has which of them.
CREATE TABLE artifact (
    folder text COLLATE "C" NOT NULL,
    sha256 bytea NOT NULL,
    at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (folder, sha256)
);
CREATE INDEX artifact_by_content ON artifact (sha256);

-- Single values: `name` tells this store from all others; `keyring …` are the fingerprints of keys.
CREATE TABLE mark (
    name  text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
) WITH (fillfactor = 50);
INSERT INTO mark VALUES ('name', replace(gen_random_uuid()::text, '-', ''));

-- Numbers of tasks and letters, taken in blocks; none is used twice.
CREATE SEQUENCE number INCREMENT BY 1024;

-- Slots of the tally, one after the other.
CREATE SEQUENCE slot AS int2 MINVALUE 0 MAXVALUE 255 START 0 CYCLE;
