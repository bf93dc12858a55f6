-- Schema 5. Other MCP servers: what their tools say of themselves, calls that were made, long results, vectors of tools.

-- Canonical. A tool of a backend as somebody approved it, the first sight included, and as it was last seen. `identity`
-- stands for the program or the address behind the name: another one is another backend, and is seen for the first time.
CREATE TABLE tool_pins (
    id              INTEGER PRIMARY KEY,
    backend         TEXT NOT NULL,
    identity        TEXT NOT NULL,
    tool            TEXT NOT NULL,
    status          TEXT NOT NULL,             -- approved, quarantined, gone
    approved        TEXT NOT NULL,             -- JSON, in the words of tools/list
    approved_digest TEXT NOT NULL,
    approved_at     INTEGER NOT NULL,
    approved_by     TEXT NOT NULL,             -- empty for the first sight
    seen            TEXT,                      -- JSON; null where it is what was approved
    seen_digest     TEXT NOT NULL,
    first_seen      INTEGER NOT NULL,
    seen_at         INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX tool_pins_tool ON tool_pins (backend, identity, tool);

-- Canonical. Every call of another server's tool and every approval, in commit order, without gaps: a chain of its own,
-- written and drawn in calls.py. Apart from the journal, whose numbers say that notes have changed.
CREATE TABLE calls (
    sequence      INTEGER PRIMARY KEY AUTOINCREMENT,
    format        INTEGER NOT NULL,            -- of the fields that are hashed
    at            INTEGER NOT NULL,
    operation     TEXT NOT NULL,               -- call, approve
    namespace     TEXT NOT NULL,               -- of the caller; no row of namespaces, where notes are
    agent_id      INTEGER NOT NULL REFERENCES agents,
    client_id     INTEGER NOT NULL REFERENCES clients,
    session       TEXT NOT NULL,
    origin        TEXT NOT NULL,
    backend       TEXT NOT NULL,
    tool          TEXT NOT NULL,
    access        TEXT NOT NULL,               -- read, write
    rule          TEXT NOT NULL,
    matched_by    TEXT NOT NULL,
    outcome       TEXT NOT NULL,               -- ok, tool_error, or the code of an error
    micros        INTEGER NOT NULL,
    cached        INTEGER NOT NULL,
    commitment    BLOB NOT NULL,               -- to the arguments, blinded by the nonce
    nonce         BLOB,                        -- a purge takes it: then no guess can be tested any more
    previous_hash BLOB NOT NULL,
    hash          BLOB NOT NULL
) STRICT;
CREATE INDEX calls_agent ON calls (agent_id, sequence);
CREATE INDEX calls_session ON calls (session, sequence);

-- Derived. Results that were too long to be answered whole, for a day or so. Content: a purge empties it.
CREATE TABLE kept_results (
    id         TEXT PRIMARY KEY,
    namespace  TEXT NOT NULL,
    backend    TEXT NOT NULL,
    tool       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    size       INTEGER NOT NULL,
    content    BLOB NOT NULL
) STRICT;
CREATE INDEX kept_results_age ON kept_results (created_at, size);

-- Derived. Vectors of the texts of servers and tools, by the encoder that made them.
CREATE TABLE tool_vectors (
    fingerprint TEXT NOT NULL,
    text_hash   BLOB NOT NULL,
    vector      BLOB NOT NULL,                 -- float32 little-endian
    PRIMARY KEY (fingerprint, text_hash)
) STRICT, WITHOUT ROWID;
