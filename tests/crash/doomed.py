"""A process that is about to be killed: one JSON command a line in, one JSON answer a line out.

The first command is `begin`, with the folder and the name of an agent. With `arm` it kills itself at a named point;
`work_without_end` goes on until somebody does it from outside, and says of every change first what it is about to do
and then what came of it.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.crash.acts import Acts
from tests.crash.failpoints import Failpoints, Point

from agora.errors import AgoraError

OFTEN = {"save": 10, "update": 2, "again": 1, "forget": 3, "restore": 1, "query": 1, "compact": 1, "purge": 1}
WORK = [what for what, times in OFTEN.items() for _ in range(times)]
"""What is done at random, each as often as it stands here."""


class Doomed(Acts):
    """Acts, and ways to end."""

    def __init__(self, folder: Path, agent: str) -> None:
        super().__init__(folder, agent)
        self.points = Failpoints(folder)

    def listen(self, *, everywhere: bool = False) -> None:
        """Before `open`: as `Failpoints.install`."""
        self.points.install(everywhere=everywhere)

    def arm(self, point: dict[str, Any]) -> None:
        """Die at this point."""
        self.points.arm(Point(**point))

    def work_without_end(self, seed: int) -> None:
        """Change and ask at random until the end."""
        chance = random.Random(seed)  # noqa: S311 - repeatable
        live: list[str] = []
        hidden: list[str] = []
        for number in range(1_000_000):
            what = chance.choice(WORK)
            if what in {"save", "update"}:
                text = f"{self.agent} number {number} of alpha words " * chance.choice((1, 1, 3))
                key = self.agent if what == "update" else None
                tags = ["red"] if number % 2 else []
                public_id = self._saved(text, key, tags)
                live += [public_id] if key is None else []
            elif what == "again":
                self._saved("the same text of everybody", None, [])
            elif what == "forget" and live:
                hidden.append(live.pop(chance.randrange(len(live))))
                say({"begin": what, "id": hidden[-1]})
                assert self.forget(hidden[-1:]) == 1
                say({"done": what, "id": hidden[-1]})
            elif what == "restore" and hidden:
                live.append(hidden.pop(chance.randrange(len(hidden))))
                say({"begin": what, "id": live[-1]})
                assert self.restore(live[-1:]) == live[-1:]
                say({"done": what, "id": live[-1]})
            elif what == "purge" and hidden:
                chosen = hidden.pop(chance.randrange(len(hidden)))
                say({"begin": what, "id": chosen})
                assert self.purge("p", chosen)["versions"] == 1
                say({"done": what, "id": chosen})
            elif what == "query":
                self.query(chance.choice(("alpha words", f"number {number}")), chance.choice(("hybrid", "lexical")))
            elif what == "compact":
                self.station.store.compact(force=chance.random() < 0.5)

    def remember_without_end(self, seed: int) -> None:
        """State facts of a few keys until the end; say of each what is about to be said, and then its id."""
        chance = random.Random(seed)  # noqa: S311 - repeatable
        for number in range(1_000_000):
            key, value = f"key {chance.randrange(4)}", f"{self.agent} says {number}"
            say({"begin": value, "key": key})
            say({"done": value, "key": key, "id": self.remember(key, value)})

    def _saved(self, text: str, key: str | None, tags: Sequence[str]) -> str:
        say({"begin": "save", "text": text, "key": key})
        public_id = self.save(text, {"key": key, "tags": tags})
        say({"done": "save", "id": public_id, "text": text, "key": key})
        return public_id


def say(value: object) -> None:
    """One line to whoever started this."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Obey until there are no more commands."""
    if not (first := sys.stdin.readline()):
        return
    _, (folder, agent), _ = json.loads(first)
    doomed = Doomed(Path(folder), agent)
    say({"ok": None})
    for line in sys.stdin:
        name, arguments, named = json.loads(line)
        try:
            answer = {"ok": getattr(doomed, name)(*arguments, **named)}
        except AgoraError as error:
            answer = {"error": error.details()}
        say(answer)


if __name__ == "__main__":
    main()
