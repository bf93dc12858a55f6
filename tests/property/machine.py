"""The state machine: any run of calls, by two processes' worth of stores and across restarts, does the same to a store
and to a dictionary.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar, Protocol

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)
from tests.crash.acts import Acts
from tests.property.dictionary import Dictionary

CONTENTS = (
    "alpha beta",
    "beta gamma alpha and a longer text that takes several passages",
    "gamma the delta",
    "ошибка 数据库 café",
    "epsilon beta",
    "zeta alpha 数据库",
    "delta eta passages " * 12,
)
WORDS = ("alpha", "beta", "gamma delta", "数据", "passages")
NAMESPACES = ("p", "q")
AGENTS = ("ann", "bob", "cid", "dee")
UPKEEP = (
    *("compact", "compact by force", "compact by force", "reindex", "restart", "restart both"),
    *("reembed in pieces of 25", "reembed in pieces of 40"),
)

contents = st.sampled_from(CONTENTS)
namespaces = st.sampled_from(NAMESPACES)
agents = st.sampled_from(AGENTS[:3])
keys = st.sampled_from([None, None, "k1", "k2"])
lives = st.sampled_from([None, None, 5, 10, 20])
actors = st.integers(0, 1)
drafts = st.tuples(contents, namespaces, agents, keys, lives)
several = st.sampled_from([("p",), ("q",), NAMESPACES])


class Actor(Protocol):
    """One process on the folder."""

    def ask(self, command: str, *arguments: object, **named: object) -> Any:
        """What a command of `Acts` answers."""
        ...


class Here:
    """This process as an actor: its own store, cache and index."""

    def __init__(self, folder: Path, agent: str) -> None:
        self.acts = Acts(folder, agent)

    def ask(self, command: str, *arguments: object, **named: object) -> Any:
        """What the command answers."""
        return getattr(self.acts, command)(*arguments, **named)


class StoreMachine(RuleBasedStateMachine):
    """Every rule does the same to the store and to the dictionary."""

    ids: Bundle[str] = Bundle("ids")
    settings: ClassVar[dict[str, Any]] = {}
    """What the stations are made with."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="agora-machine-"))
        self.known = Dictionary()
        self.sequence = 0
        self.step = 0
        self.encoder: tuple[int, int] | None = None
        self.actors: list[Actor] = [self.opened(0), self.opened(1)]

    def opened(self, which: int) -> Actor:
        actor: Actor = Here(self.folder, f"actor{which}")
        actor.ask("open", self.settings, self.known.now, self.encoder)
        return actor

    @initialize(target=ids, several=st.lists(drafts, min_size=3, max_size=6), which=actors)
    def begin(self, several: list[tuple[str, str, str, str | None, int | None]], which: int) -> Any:
        return self.save_several(several, which)

    @rule(target=ids, several=st.lists(drafts, min_size=2, max_size=4), which=actors)
    def save_more(self, several: list[tuple[str, str, str, str | None, int | None]], which: int) -> Any:
        return self.save_several(several, which)

    def save_several(self, several: list[tuple[str, str, str, str | None, int | None]], which: int) -> Any:
        return multiple(*dict.fromkeys(self.saved(*draft, which) for draft in several))

    @rule(target=ids, content=contents, namespace=namespaces, agent=agents, key=keys, lives=lives, which=actors)
    def save(self, content: str, namespace: str, agent: str, key: str | None, lives: int | None, which: int) -> str:
        return self.saved(content, namespace, agent, key, lives, which)

    @rule(target=ids, chosen=ids, agent=agents, which=actors)
    def save_again(self, chosen: str, agent: str, which: int) -> str:
        row = self.known.rows[chosen]
        return self.saved(row.content, row.namespace, agent, row.key, None, which)

    def saved(self, content: str, namespace: str, agent: str, key: str | None, lives: int | None, which: int) -> str:
        intent = self.known.intended(content, namespace, agent, key, lives)
        saved = self.actors[which].ask("saved", content, namespace, agent, key, lives)
        assert saved["sequence"] > self.sequence
        self.sequence = saved["sequence"]
        row = self.known.done(intent, saved["id"])
        replaced = intent.replaced
        status = "duplicate" if intent.joins else "updated" if replaced else "created"
        assert (saved["status"], saved["version"]) == (status, row.version)
        assert saved["supersedes"] == (replaced[0].id if replaced and not intent.joins else None)
        return row.id

    @rule(chosen=ids, which=actors, dry_run=st.booleans())
    def forget(self, chosen: str, which: int, dry_run: bool) -> None:
        row = self.known.rows[chosen]
        done = self.actors[which].ask("forgotten", row.namespace, [chosen], None, dry_run=dry_run)
        if row.purged or (row.forgotten and not self.known.expired(row)):
            assert (done["already"], done["ids"]) == ([chosen], [])
        elif self.known.expired(row):
            assert (done["unknown"], done["ids"]) == ([chosen], [])
        else:
            assert done["ids"] == [chosen]
            row.forgotten = not dry_run
        assert done["count"] == len(done["ids"])
        self.sequence = max(self.sequence, done["sequence"])

    @rule(namespace=namespaces, agent=agents, which=actors)
    def forget_all_of_an_agent(self, namespace: str, agent: str, which: int) -> None:
        done = self.actors[which].ask("forgotten", namespace, [], agent, dry_run=False)
        with_agent = [row for row in self.known.live(namespace) if agent in row.savers]
        alone = [row for row in with_agent if row.savers == [agent]]
        assert set(done["ids"]) == {row.id for row in alone}
        assert done["shared"] == len(with_agent) - len(alone)
        for row in alone:
            row.forgotten = True
        self.sequence = max(self.sequence, done["sequence"])

    @rule(chosen=ids, which=actors, forgotten=st.booleans())
    def restore(self, chosen: str, which: int, forgotten: bool) -> None:
        hidden = [row.id for row in self.known.rows.values() if row.forgotten and not row.purged]
        for each in hidden if forgotten else [chosen]:
            self.restored(each, which)

    def restored(self, chosen: str, which: int) -> None:
        row = self.known.rows[chosen]
        done = self.actors[which].ask("restored", row.namespace, chosen)
        twin = self.known.twin(row.namespace, row.content)
        if row.purged:
            assert done["state"] == "purged"
        elif self.known.expired(row):
            assert done["state"] == "expired"
        elif not row.forgotten:
            assert done["state"] == "live"
        elif row.superseded_by is not None:
            assert done["state"] == "superseded"
            row.forgotten = False
        elif twin is not None and (row.key is None or twin.key is None):
            assert (done["state"], done["repeats"]) == ("duplicate", twin.id)
        else:
            assert done["state"] == "restored"
            row.forgotten = False
        self.sequence = max(self.sequence, done["sequence"])

    @rule(chosen=ids, which=actors, forgotten=st.booleans())
    def purge(self, chosen: str, which: int, forgotten: bool) -> None:
        hidden = [row.id for row in self.known.rows.values() if row.forgotten and not row.purged]
        row = self.known.rows[hidden[0] if forgotten and hidden else chosen]
        chosen = row.id
        done = self.actors[which].ask("purge", row.namespace, chosen)
        if row.purged:
            assert (done["refused"], done["gone"], done["versions"]) == (False, [chosen], 0)
        elif not row.forgotten:
            assert done["refused"]
        else:
            group = self.known.condemned(row)
            assert (done["refused"], done["versions"], done["problems"]) == (False, len(group), {})
            self.sequence += len(group)
            for each in group:
                each.purged = True

    @rule(seconds=st.integers(1, 12))
    def wait(self, seconds: int) -> None:
        for actor in self.actors:
            actor.ask("advance", seconds)
        self.known.now += seconds

    @rule(which=actors, what=st.sampled_from(UPKEEP))
    def upkeep(self, which: int, what: str) -> None:
        if what == "restart":
            self.restart(which)
        elif what == "restart both":
            self.closed(0)
            self.closed(1)
            self.actors = [self.opened(0), self.opened(1)]
        elif what == "reindex":
            self.actors[which].ask("reindex")
        elif what.startswith("compact"):
            self.actors[which].ask("compact", force=what.endswith("by force"))
        else:
            self.reembed(which, int(what.rsplit(maxsplit=1)[-1]))

    def restart(self, which: int) -> None:
        self.closed(which)
        self.actors[which] = self.opened(which)

    def reembed(self, which: int, piece: int) -> None:
        dimension = 40 - self.encoder[0] if self.encoder else 24
        self.encoder = dimension, piece
        self.actors[which].ask("reembed", dimension, piece)
        # A change of the store as a whole, and none that anybody sees.
        self.sequence += 1
        assert self.actors[1 - which].ask("mismatch")
        self.restart(1 - which)

    def closed(self, which: int) -> None:
        self.actors[which].ask("close")

    @rule(chosen=consumes(ids), which=actors, namespace=namespaces)
    def get(self, chosen: str, which: int, namespace: str) -> None:
        row = self.known.rows[chosen]
        got = self.actors[which].ask("got", namespace, chosen)
        if row.namespace != namespace:
            assert got["state"] == "unknown"
        elif row.purged:
            assert got["state"] == "purged"
        elif self.known.expired(row):
            assert got["state"] == "expired"
        elif row.forgotten:
            assert got["state"] == "forgotten"
        else:
            assert got == {
                "state": "there",
                "content": row.content,
                "version": row.version,
                "superseded_by": row.superseded_by,
                "savers": row.savers,
                "tags": sorted(row.tags),
                "ends": row.ends,
                "history": [each.id for each in self.known.versions(namespace, row.key)],
            }

    @rule(word=st.sampled_from(WORDS), which=actors, searched=several, agent=st.none() | agents)
    def query(self, word: str, which: int, searched: tuple[str, ...], agent: str | None) -> None:
        tags = [] if agent is None else [agent]
        found = self.actors[which].ask("everything", word, searched, tags)
        live = [row for row in self.known.live(*searched) if row.tags.issuperset(tags)]
        parts = word.split()
        containing = {row.id for row in live if any(part in row.content for part in parts)}
        assert found["semantic"] == sorted(row.id for row in live)
        assert found["lexical"] == sorted(containing)
        assert found["sequence"] == self.sequence
        hybrid = self.actors[which].ask("asked", word, "hybrid", searched, tags)
        assert len(hybrid) == len(set(hybrid))
        assert set(hybrid) <= {row.id for row in live}
        # Of near copies one is shown; that of a text of its own is.
        assert bool(hybrid) >= bool(containing)

    @invariant()
    def every_table_agrees(self) -> None:
        self.step += 1
        self.actors[self.step % 2].ask("check")
        with closing(sqlite3.connect(self.folder / "agora.db", isolation_level=None)) as connection:
            items, texts, last = connection.execute(
                "SELECT (SELECT count(*) FROM items), (SELECT count(*) FROM texts), (SELECT max(sequence) FROM journal)"
            ).fetchone()
        assert items == len(self.known.rows)
        assert texts == len([row for row in self.known.rows.values() if not row.purged])
        assert (last or 0) == self.sequence

    @invariant()
    def counts_and_live_rows_agree(self) -> None:
        states = [self.known.state(row) for row in self.known.rows.values()]
        live = self.known.live(*NAMESPACES)
        expected = {
            "notes": {
                "rows": len(states),
                **{state: states.count(state) for state in ("live", "superseded", "forgotten", "expired", "purged")},
            },
            "agents": {agent: number for agent in AGENTS if (number := sum(agent in row.savers for row in live))},
            "sequence": self.sequence,
        }
        for actor in self.actors:
            assert actor.ask("counts", NAMESPACES) == expected

    def teardown(self) -> None:
        self.closed(0)
        self.closed(1)
        shutil.rmtree(self.folder, ignore_errors=True)
