-- Schema 3. The vector index outside this file: immutable segment files, named here, so that a reader's snapshot says
-- which of them it may use. The files are derived: whatever is missing or damaged is built again from the vectors.

-- One row for each encoder: the newest complete generation of its index. `sequence` and `hash` are of the journal's
-- last change that it holds; a journal that does not agree makes the generation worthless.
CREATE TABLE generations (
    encoder_id INTEGER PRIMARY KEY REFERENCES encoders,
    number     INTEGER NOT NULL,
    sequence   INTEGER NOT NULL,
    hash       BLOB,
    state      TEXT NOT NULL,                  -- file with what changes: which slots are dead, when rows expire
    state_crc  INTEGER NOT NULL,
    at         INTEGER NOT NULL
) STRICT;

CREATE TABLE segments (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    encoder_id INTEGER NOT NULL REFERENCES encoders,
    file       TEXT NOT NULL,                  -- name in the folder beside the store; never used twice
    passages   INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    crc        INTEGER NOT NULL                -- of the whole file
) STRICT;
CREATE UNIQUE INDEX segments_file ON segments (file);

-- The newest reads of one session are looked up at every save.
CREATE INDEX reads_newest ON reads (session, agent, id);

-- Passages of a layout are told apart while a store moves to another encoder.
CREATE INDEX passages_layout ON passages (layout, item_id);

-- Which version of the text analysis built the full text. Every store before this schema was built by the first.
INSERT OR IGNORE INTO meta VALUES ('analysis', '1');

-- Canonical: under which ids an import brought texts that were here already, and the rows that they joined. So the same
-- file is known again when that row was forgotten, purged or superseded since.
CREATE TABLE aliases (
    public_id TEXT PRIMARY KEY,
    item_id   INTEGER NOT NULL REFERENCES items
) STRICT, WITHOUT ROWID;

-- Moving a store to another encoder: a row for each time, and a digest may come back once its last row is retired.
DROP INDEX encoders_digest;
CREATE UNIQUE INDEX encoders_digest ON encoders (digest) WHERE state <> 'retired';

-- The full text and the statistics of the layout that a store moves to, while it moves; empty otherwise. The move
-- exchanges the names of each pair, so both of a pair are written alike, to the quotes that renaming puts around names.
CREATE VIRTUAL TABLE fulltext_new USING fts5 (
    scope, title, body, words UNINDEXED,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co S* P*'"
);
ALTER TABLE fulltext_new RENAME TO fulltext_spare;
ALTER TABLE fulltext RENAME TO fulltext_new;
ALTER TABLE fulltext_new RENAME TO fulltext;

CREATE TABLE term_stats_new (
    namespace_id INTEGER NOT NULL,
    type         TEXT NOT NULL,
    term         TEXT NOT NULL,
    passages     INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, type, term)
) STRICT, WITHOUT ROWID;
ALTER TABLE term_stats_new RENAME TO term_stats_spare;
ALTER TABLE term_stats RENAME TO term_stats_new;
ALTER TABLE term_stats_new RENAME TO term_stats;

CREATE TABLE namespace_stats_new (
    namespace_id INTEGER NOT NULL,
    type         TEXT NOT NULL,
    passages     INTEGER NOT NULL,
    words        INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, type)
) STRICT, WITHOUT ROWID;
ALTER TABLE namespace_stats_new RENAME TO namespace_stats_spare;
ALTER TABLE namespace_stats RENAME TO namespace_stats_new;
ALTER TABLE namespace_stats_new RENAME TO namespace_stats;
