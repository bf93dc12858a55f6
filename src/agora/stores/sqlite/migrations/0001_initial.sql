-- Schema 1. All instants are integers: microseconds since 1970-01-01T00:00:00Z.
--
-- Canonical: meta, namespaces, agents, clients, items, texts, item_tags, item_metadata, savers, journal,
-- journal_payload. Derived, rebuildable from them: passages, encoders, vectors, fulltext, term_stats,
-- namespace_stats, namespace_seq.
--
-- A note is live when superseded_by and forgotten_at are null and expires_at is null or ahead. Facts will have
-- their own rule (validity in time) in a table of their own: `items.key` is for notes.
--
-- STRICT everywhere: a hash stored as text would never equal the same hash stored as bytes. Values that grow with
-- the product (type, origin, operation, state) carry no CHECK, which SQLite cannot alter; the model checks them.
-- Uniqueness is by named indexes, which can be replaced; an inline UNIQUE cannot.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE namespaces (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX namespaces_name ON namespaces (name);

CREATE TABLE agents (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    first_seen INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX agents_name ON agents (name);

-- The program at the other end of a connection, apart from the agent name that it claims. `token` is the name of
-- the token it came with, never the secret.
CREATE TABLE clients (
    id      INTEGER PRIMARY KEY,
    name    TEXT NOT NULL,
    version TEXT NOT NULL,
    token   TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE UNIQUE INDEX clients_identity ON clients (name, version, token);

-- One immutable version of something that can be found. AUTOINCREMENT: an id once used never comes back, so that
-- index slots and caches can hold it. The pointers have no foreign keys and the hashes may be null: a purged row
-- stays as a skeleton, so that purging the newest version never revives an older one.
CREATE TABLE items (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    public_id     TEXT NOT NULL,
    type          TEXT NOT NULL,               -- note, message, fact, document
    namespace_id  INTEGER NOT NULL REFERENCES namespaces,
    kind          TEXT NOT NULL,
    key           TEXT,
    version       INTEGER NOT NULL DEFAULT 1,
    content_hash  BLOB,                        -- SHA-256 of the exact UTF-8 bytes: decides duplicates
    normal_hash   BLOB,                        -- of NFKC, casefolded, white space collapsed: feeds `related`
    confidence    REAL,
    session       TEXT,                        -- place in a conversation: neighbours are found by (session, seq)
    seq           INTEGER,
    speaker       TEXT,
    occurred_at   INTEGER,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    effective_at  INTEGER NOT NULL,            -- occurred_at, else created_at
    expires_at    INTEGER,
    supersedes    INTEGER,
    superseded_by INTEGER,
    superseded_at INTEGER,
    contests      INTEGER,                     -- the row of higher authority that this one stands beside
    forgotten_at  INTEGER,
    forget_reason TEXT,
    purged_at     INTEGER
) STRICT;
CREATE UNIQUE INDEX items_public ON items (public_id);
-- One head per key. A forgotten head still holds its place, so forgetting never revives an older version.
CREATE UNIQUE INDEX items_head ON items (namespace_id, type, key)
    WHERE key IS NOT NULL AND superseded_by IS NULL AND contests IS NULL;
CREATE INDEX items_key ON items (namespace_id, type, key, version) WHERE key IS NOT NULL;
-- One row per text. Two keys may have equal values; a save without a key joins a row of the same text.
CREATE UNIQUE INDEX items_text ON items (namespace_id, content_hash, ifnull(key, ''))
    WHERE type = 'note' AND superseded_by IS NULL AND forgotten_at IS NULL AND contests IS NULL;
CREATE INDEX items_normal ON items (namespace_id, normal_hash);
CREATE INDEX items_time ON items (namespace_id, effective_at);
CREATE INDEX items_expiry ON items (namespace_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX items_forgotten ON items (namespace_id, forgotten_at)
    WHERE forgotten_at IS NOT NULL AND purged_at IS NULL;
CREATE INDEX items_conversation ON items (namespace_id, session, seq) WHERE session IS NOT NULL;
CREATE UNIQUE INDEX items_seq ON items (namespace_id, session, seq)
    WHERE type = 'message' AND superseded_by IS NULL;

-- Apart from items: liveness checks and scans must not walk over long texts, and purge deletes one row.
CREATE TABLE texts (
    item_id  INTEGER PRIMARY KEY REFERENCES items,
    title    TEXT,
    content  TEXT NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}'        -- canonical JSON object
) STRICT;

-- Provenance: everyone who saved the item. A retry by the same saver counts up, it adds no row.
CREATE TABLE savers (
    item_id   INTEGER NOT NULL REFERENCES items,
    n         INTEGER NOT NULL,                -- 0 is who saved it first
    agent_id  INTEGER NOT NULL REFERENCES agents,
    client_id INTEGER NOT NULL REFERENCES clients,
    session   TEXT NOT NULL,
    origin    TEXT NOT NULL,                   -- user, agent, tool, web
    first_at  INTEGER NOT NULL,
    last_at   INTEGER NOT NULL,
    times     INTEGER NOT NULL DEFAULT 1,
    given     TEXT NOT NULL DEFAULT '{}',      -- JSON: title, metadata, confidence as this saver gave them
    PRIMARY KEY (item_id, n)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX savers_identity ON savers (item_id, agent_id, client_id, session, origin);
CREATE INDEX savers_agent ON savers (agent_id, item_id);
CREATE INDEX savers_session ON savers (session, item_id);

-- A tag belongs to the item once for each saver who gave it, so that one saver's changes can be taken back.
CREATE TABLE item_tags (
    item_id INTEGER NOT NULL REFERENCES items,
    tag     TEXT NOT NULL,
    saver   INTEGER NOT NULL,
    PRIMARY KEY (item_id, tag, saver)
) STRICT, WITHOUT ROWID;
CREATE INDEX item_tags_tag ON item_tags (tag, item_id);

-- Top-level keys of texts.metadata, each with the SHA-256 of its canonical JSON value: equality is one look-up.
CREATE TABLE item_metadata (
    item_id INTEGER NOT NULL REFERENCES items,
    key     TEXT NOT NULL,
    value   BLOB NOT NULL,
    PRIMARY KEY (item_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX item_metadata_value ON item_metadata (key, value, item_id);

-- A retrievable piece of an item: code point offsets into its content. A layout is one way of cutting texts;
-- encoders of one profile may share it, a migration builds another beside it.
CREATE TABLE passages (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    item_id INTEGER NOT NULL REFERENCES items,
    layout  INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    start   INTEGER NOT NULL,
    stop    INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX passages_place ON passages (item_id, layout, n);

-- The store's profile is the set of active encoders; each has its own vector space.
CREATE TABLE encoders (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    digest      TEXT NOT NULL,                 -- of the fingerprint
    name        TEXT NOT NULL,
    dimension   INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,                 -- JSON
    layout      INTEGER NOT NULL,
    state       TEXT NOT NULL                  -- building, active, retired
) STRICT;
CREATE UNIQUE INDEX encoders_digest ON encoders (digest);

CREATE TABLE vectors (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    passage_id INTEGER NOT NULL REFERENCES passages,
    encoder_id INTEGER NOT NULL REFERENCES encoders,
    vector     BLOB NOT NULL                   -- float32 little-endian, L2-normalised
) STRICT;
CREATE UNIQUE INDEX vectors_passage ON vectors (passage_id, encoder_id);

-- Every change, in commit order (writers hold the lock from BEGIN IMMEDIATE on), without gaps. Written and drawn
-- in journal.py. No foreign key to items: the journal outlives what it tells of.
CREATE TABLE journal (
    sequence      INTEGER PRIMARY KEY AUTOINCREMENT,
    format        INTEGER NOT NULL,            -- of the fields that are hashed
    at            INTEGER NOT NULL,
    namespace_id  INTEGER REFERENCES namespaces,
    operation     TEXT NOT NULL,
    subject       TEXT,                        -- public id
    item_id       INTEGER,
    agent_id      INTEGER NOT NULL REFERENCES agents,
    client_id     INTEGER NOT NULL REFERENCES clients,
    session       TEXT NOT NULL,
    origin        TEXT NOT NULL,
    commitment    BLOB NOT NULL,               -- to content and payload, blinded by the payload's nonce
    previous_hash BLOB NOT NULL,
    hash          BLOB NOT NULL
) STRICT;
CREATE INDEX journal_item ON journal (item_id, sequence);
CREATE INDEX journal_namespace ON journal (namespace_id, sequence);
CREATE INDEX journal_agent ON journal (agent_id, sequence);
CREATE INDEX journal_session ON journal (session, sequence);

-- What the change did to the fields that may change; the text itself is in the immutable item. Purgeable: without
-- the nonce a commitment cannot be tested against a guessed text.
CREATE TABLE journal_payload (
    sequence INTEGER PRIMARY KEY,
    nonce    BLOB NOT NULL,
    content  BLOB NOT NULL,                    -- SHA-256 of the item's content
    before   TEXT,                             -- JSON
    after    TEXT                              -- JSON
) STRICT;

-- The last change that touched each namespace, written in the change's own transaction.
CREATE TABLE namespace_seq (
    namespace_id INTEGER PRIMARY KEY REFERENCES namespaces,
    sequence     INTEGER NOT NULL
) STRICT;

-- rowid = passages.id of the active layout, for items neither superseded nor forgotten. Terms are made by
-- agora.text.analysis and separated by blanks; every other character stays inside its term. This table only
-- matches: `scope` holds one term for the namespace, scores come from the statistics below.
CREATE VIRTUAL TABLE fulltext USING fts5 (
    scope, title, body, words UNINDEXED,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co S* P*'"
);

-- Statistics per namespace and type: another namespace's rows must neither move nor leak into a score, and an
-- ingest of documents must not move the scores of notes.
CREATE TABLE term_stats (
    namespace_id INTEGER NOT NULL,
    type         TEXT NOT NULL,
    term         TEXT NOT NULL,
    passages     INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, type, term)
) STRICT, WITHOUT ROWID;

CREATE TABLE namespace_stats (
    namespace_id INTEGER NOT NULL,
    type         TEXT NOT NULL,
    passages     INTEGER NOT NULL,
    words        INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, type)
) STRICT, WITHOUT ROWID;
