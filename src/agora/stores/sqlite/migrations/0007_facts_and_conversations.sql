-- Schema 7. Facts, and conversations with their summaries. Each is an item, so that provenance, journal, rights, export
-- and purge hold for it as for notes: type `fact`, `message` and `summary`.
--
-- A fact is findable like a note: its text is the words it was taken from, or its own rendering. For it `items.key` is
-- null; `superseded_by` and `expires_at` are derived: until when a query may find it, drawn from all statements of its
-- slot whenever one of them changes. What holds at which instant, `recall` draws from the table `facts` alone.
-- Messages and summaries are in no index: a conversation is searched by reading it.

-- What a fact is of: normalised, so that every way to write it meets; and as it was written first.
CREATE TABLE fact_slots (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces,
    subject      TEXT NOT NULL,
    key          TEXT NOT NULL,
    shown_subject TEXT NOT NULL,
    shown_key    TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX fact_slots_place ON fact_slots (namespace_id, subject, key);
CREATE INDEX fact_slots_key ON fact_slots (namespace_id, key);

-- One statement. Immutable; a purge takes value and sameness and leaves the times, so that what a purged statement had
-- replaced does not come back.
CREATE TABLE facts (
    item_id    INTEGER PRIMARY KEY REFERENCES items,
    slot_id    INTEGER NOT NULL,
    value      TEXT,                           -- canonical JSON
    same       BLOB,                           -- SHA-256 of the normalised value
    multi      INTEGER NOT NULL,
    quoted     INTEGER NOT NULL,               -- whether the text is a quote
    valid_from INTEGER NOT NULL,
    valid_to   INTEGER,
    expires_at INTEGER,                        -- as it was given: items.expires_at may end earlier
    reverted   INTEGER NOT NULL DEFAULT 0,     -- taken back: counts as never said
    rank       INTEGER,                        -- of the origin, where a purge took the sources
    -- Derived, with items.superseded_by: when the statement begins that takes its place; else later than any instant.
    -- Whoever asks what holds at an instant has to read nothing that was replaced by then.
    replaced_at INTEGER NOT NULL DEFAULT 9223372036854775807
) STRICT;
CREATE INDEX facts_slot ON facts (slot_id, replaced_at);

-- How a conversation's context is made, where somebody has said so; and the number of its last message, which no other
-- message gets when that one is purged.
CREATE TABLE conversations (
    namespace_id INTEGER NOT NULL REFERENCES namespaces,
    session      TEXT NOT NULL,
    strategy     TEXT,
    last         INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, session)
) STRICT, WITHOUT ROWID;

-- Beside an item of type summary, whose key is the conversation's name: the messages that it covers.
CREATE TABLE summaries (
    item_id    INTEGER PRIMARY KEY REFERENCES items,
    first      INTEGER NOT NULL,
    last       INTEGER NOT NULL,
    written_by TEXT NOT NULL
) STRICT;
