-- Schema 4. Who may change what: the origin of a note is the highest of its savers, a text of lower origin stands beside
-- what it contradicts (`items.contests`), and notes of the user's can be pinned.

-- What is not here is not pinned. A pinned note is the user's, and has no expiry.
CREATE TABLE pins (
    item_id   INTEGER PRIMARY KEY REFERENCES items,
    pinned_at INTEGER NOT NULL
) STRICT;

-- 0 in `contests` is no row: what a contested text stood beside is not in this store.
CREATE INDEX items_contests ON items (contests) WHERE contests IS NOT NULL;
