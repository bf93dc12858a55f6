"""Which section of the specification a behaviour is from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SITE = "https://modelcontextprotocol.io/specification/"


def spec(*sections: str) -> pytest.MarkDecorator:
    """Names the sections, as `2025-11-25/server/tools#listing-tools`, that ask for what a test looks at."""
    return pytest.mark.spec(*sections)


REVISIONS = ("2025-11-25", "2026-07-28")
FOLDER = Path(__file__).with_name("everywhere")


class Behaviour(NamedTuple):
    """One test of the suite: what it says, and the sections that ask for it."""

    name: str
    sections: tuple[str, ...]

    @property
    def row(self) -> str:
        """Its row in the table of docs/protocol.md."""
        said = self.name.removeprefix("test_").replace("_", " ")
        return f"| {said} | {' | '.join(self._links(revision) for revision in REVISIONS)} |"

    def _links(self, revision: str) -> str:
        return ", ".join(
            f"[{section.removeprefix(revision + '/')}]({SITE}{section})"
            for section in self.sections
            if section.startswith(revision + "/")
        )


def behaviours() -> dict[str, list[Behaviour]]:
    """Every test function by the name of its file, read from the source: one without sections has none."""
    found: dict[str, list[Behaviour]] = {}
    for file in sorted(FOLDER.glob("test_*.py")):
        rows = found.setdefault(file.stem.removeprefix("test_").replace("_", " "), [])
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                rows.append(Behaviour(node.name, tuple(_sections(node))))
    return found


def _sections(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for mark in function.decorator_list:
        if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "spec":
            yield from (ast.literal_eval(argument) for argument in mark.args)


def table() -> str:
    """What stands in docs/protocol.md, for `python -m tests.protocol.spec` to print."""
    rows = [f"| behaviour | {' | '.join(REVISIONS)} |", "|---|---|---|"]
    for title, tests in behaviours().items():
        rows += [f"| **{title}** | | |", *(each.row for each in tests)]
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())  # noqa: T201 - what it is for
