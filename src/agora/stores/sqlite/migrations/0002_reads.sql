-- Schema 2. Who read what, so that an agent that repeats what it read here is no second source, and so that a caller
-- can be told what others changed since. Bounded, outside the journal: it tells of no change, it holds no content, and
-- losing it loses nothing but these two answers.

-- One row for each note that an answer gave to a session: the newest 10,000, none older than 30 days. A read that
-- happens again takes a new id, so ids rise with time and the oldest rows are the lowest.
CREATE TABLE reads (
    id       INTEGER PRIMARY KEY,
    session  TEXT NOT NULL,                    -- of the connection; the one that a save claims may be another
    agent    TEXT NOT NULL,
    item_id  INTEGER NOT NULL,                 -- no foreign key: a purge need not look here
    sequence INTEGER NOT NULL,                 -- of the snapshot that the answer was made from
    at       INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX reads_item ON reads (session, agent, item_id);

-- The newest snapshot of a namespace that an agent was answered from, by a query or a cross-reference.
CREATE TABLE readers (
    agent        TEXT NOT NULL,
    namespace_id INTEGER NOT NULL REFERENCES namespaces,
    sequence     INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    PRIMARY KEY (agent, namespace_id)
) STRICT, WITHOUT ROWID;
