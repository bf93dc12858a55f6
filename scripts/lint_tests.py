"""Refuse tests that replace our own code or that sleep: `python scripts/lint_tests.py [FOLDER OR FILE ...]`.

Refused are `unittest.mock` and pytest-mock; `setattr` and `delattr` of monkeypatch aimed at something of
`agora`; an assignment to an attribute of something imported from `agora`; and `time.sleep`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MOCK = "use the fakes in agora.testing or a real object: a mock of our own code tests the mock"
PATCH = "do not replace parts of agora: pass what the code needs from outside"
SLEEP = "do not sleep: wait for the event itself, with a limit"


class Finding(NamedTuple):
    """A forbidden line and what to do instead."""

    line: int
    message: str


def findings(source: str) -> list[Finding]:
    """What is forbidden in the test module `source`, in the order of its lines."""
    tree = ast.parse(source)
    return sorted({*_mocks(tree), *_patches(tree), *_sleeps(tree)})


def _mocks(tree: ast.AST) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Finding(node.lineno, MOCK) for alias in node.names if _is_mock(alias.name))
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (Finding(node.lineno, MOCK) for name in names if _is_mock(name))
        elif isinstance(node, ast.arg) and node.arg == "mocker":
            yield Finding(node.lineno, MOCK)


def _is_mock(name: str) -> bool:
    return f"{name}.".startswith(("unittest.mock.", "mock.", "pytest_mock."))


def _patches(tree: ast.AST) -> Iterator[Finding]:
    imported = _imported_from_agora(tree)
    ours = imported | _made_from(tree, imported)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in {"setattr", "delattr"}:
                continue
            target = node.args[0] if node.args else next((k.value for k in node.keywords), None)
            if _names_agora(target) or _root(target) in ours:
                yield Finding(node.lineno, PATCH)
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Attribute) and _root(target) in imported for target in targets):
                yield Finding(node.lineno, PATCH)


def _sleeps(tree: ast.AST) -> Iterator[Finding]:
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name for alias in node.names if alias.name == "time"}
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            yield from (Finding(node.lineno, SLEEP) for alias in node.names if alias.name == "sleep")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "sleep" and _root(node) in modules:
            yield Finding(node.lineno, SLEEP)


def _imported_from_agora(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            ours = [alias for alias in node.names if alias.name.partition(".")[0] == "agora"]
            names |= {alias.asname or "agora" for alias in ours}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "agora":
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def _made_from(tree: ast.AST, names: set[str]) -> set[str]:
    """Variables that are assigned from something whose first name is in `names`."""
    return {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _root(node.value) in names
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _names_agora(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and f"{node.value}.".startswith("agora.")


def _root(node: ast.AST | None) -> str | None:
    """The first name of a chain like `name.attribute(...)[0]`."""
    while True:
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Await):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return node.id if isinstance(node, ast.Name) else None


def main(arguments: list[str]) -> int:
    """1 if a test breaks a rule, else 0; each finding is one line `path:line: message`."""
    places = [Path(argument) for argument in arguments] or [Path(__file__).resolve().parent.parent / "tests"]
    files = [file for place in places for file in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
    found = [(file, finding) for file in files for finding in findings(file.read_text(encoding="utf-8"))]
    for file, finding in found:
        print(f"{file}:{finding.line}: {finding.message}")
    print(f"{len(files)} test files, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
