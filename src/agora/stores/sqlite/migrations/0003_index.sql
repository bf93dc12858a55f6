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
