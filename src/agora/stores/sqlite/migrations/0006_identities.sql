-- Schema 6. Who somebody is, where it counts, is told by how it came in: the name that a program gives itself is its own
-- word, and two of them that came with different tokens are two.

-- The newest snapshot of a namespace that an agent was answered from, by a query or a cross-reference. In place of
-- `readers`, which knew the name alone. Bounded for each token, and outside the journal, as `reads` is.
CREATE TABLE read_marks (
    door         TEXT NOT NULL,                -- local: a session or a command of this machine's user; http
    token        TEXT NOT NULL,                -- name of the token; empty without one
    agent        TEXT NOT NULL,
    namespace_id INTEGER NOT NULL REFERENCES namespaces,
    sequence     INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    PRIMARY KEY (door, token, agent, namespace_id)
) STRICT, WITHOUT ROWID;

-- Which token an older mark was made with is not known. Most are of this machine's user; others begin anew, and are told
-- of changes that they know already.
INSERT INTO read_marks SELECT 'local', '', agent, namespace_id, sequence, at FROM readers;
DROP TABLE readers;
