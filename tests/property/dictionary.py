"""The dictionary that a store must agree with: what is known of every note, and what each change does to it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Row:
    """What the model knows of a note."""

    id: str
    content: str
    namespace: str
    key: str | None
    version: int
    born: int
    savers: list[str]
    ends: int | None = None
    forgotten: bool = False
    purged: bool = False
    superseded_by: str | None = None
    tags: set[str] = field(default_factory=set)


@dataclass
class Intent:
    """A save, and what the model says that it must do."""

    content: str
    namespace: str
    agent: str
    key: str | None
    ends: int | None
    joins: Row | None
    replaced: list[Row]
    loose: Row | None
    version: int


def joined(one: int | None, other: int | None) -> int | None:
    """Of two ends the later; none is later than any."""
    return None if one is None or other is None else max(one, other)


class Dictionary:
    """All notes of a store by id, and the time, in seconds."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.now = 0

    def state(self, row: Row) -> str:
        """As a store's counts name it."""
        if row.purged:
            return "purged"
        if row.superseded_by is not None:
            return "superseded"
        if self.expired(row):
            return "expired"
        return "forgotten" if row.forgotten else "live"

    def expired(self, row: Row) -> bool:
        """Whether the clock has ended it."""
        return row.ends is not None and row.ends <= self.now

    def live(self, *searched: str) -> list[Row]:
        """What queries in these namespaces find."""
        return [row for row in self.rows.values() if row.namespace in searched and self.state(row) == "live"]

    def twin(self, namespace: str, content: str) -> Row | None:
        """The live row with this text that a save without a key joins."""
        same = [row for row in self.live(namespace) if row.content == content]
        return min(same, key=lambda row: (row.key is not None, row.born), default=None)

    def versions(self, namespace: str, key: str | None) -> list[Row]:
        """Versions of a key, oldest first, without those that were purged."""
        found = [row for row in self.rows.values() if (row.namespace, row.key) == (namespace, key) and not row.purged]
        return found if key is not None else []

    def head(self, namespace: str, key: str) -> Row | None:
        """The newest version of a key."""
        return next((row for row in self.versions(namespace, key) if row.superseded_by is None), None)

    def intended(self, content: str, namespace: str, agent: str, key: str | None, lives: int | None) -> Intent:
        """What a save has to do now."""
        head = self.head(namespace, key) if key else None
        twin = self.twin(namespace, content)
        same = head if head and self.state(head) == "live" and head.content == content else None
        loose = twin if key and twin and twin.key is None else None
        return Intent(
            content,
            namespace,
            agent,
            key,
            ends=None if lives is None else self.now + lives,
            joins=twin if key is None else same,
            replaced=[old for old in (head, loose) if old is not None],
            loose=loose,
            version=head.version + 1 if head else 1,
        )

    def done(self, intent: Intent, public_id: str) -> Row:
        """The row that a save has joined or made; nothing else changed."""
        if (row := intent.joins) is not None:
            assert public_id == row.id
            row.savers += [] if intent.agent in row.savers else [intent.agent]
            row.ends = joined(row.ends, intent.ends)
            row.tags.add(intent.agent)
            return row
        assert public_id not in self.rows
        born = len(self.rows)
        key, agent, loose = intent.key, intent.agent, intent.loose
        row = Row(public_id, intent.content, intent.namespace, key, intent.version, born, [agent], intent.ends)
        row.tags = {agent}
        if loose is not None:
            row.savers = loose.savers + ([] if agent in loose.savers else [agent])
            row.ends = joined(loose.ends, intent.ends)
            row.tags |= loose.tags
        for old in intent.replaced:
            old.superseded_by = row.id
        self.rows[row.id] = row
        return row

    def condemned(self, row: Row) -> list[Row]:
        """The row; of a current one its older versions too, and what of the same text these took the place of."""
        if row.superseded_by is not None:
            return [row]
        group = [row, *(old for old in self.versions(row.namespace, row.key) if old is not row)]
        heads = {each.id for each in group}
        rest = [each for each in self.rows.values() if each.superseded_by in heads and each.key is None]
        return group + [each for each in rest if not each.purged]
