-- What agents remember of conversations: their own id for each, and where they work.
CREATE TABLE session (
    tenant     TEXT    NOT NULL,
    owner      TEXT    NOT NULL,
    context_id TEXT    NOT NULL,
    agent      TEXT    NOT NULL,
    native     TEXT,
    workspace  TEXT,
    at         INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, context_id, agent)
) STRICT, WITHOUT ROWID;

CREATE INDEX session_by_age ON session (at);
