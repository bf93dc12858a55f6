"""The table of scenarios is whole, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+) \|$", re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
REPORT = re.compile(r"^\| ([\w.-]+/[\w.-]+#\d+) \| (.+?) \| (.+) \|$", re.MULTILINE)
REPORTS = REPORT.findall((ROOT / "tests/scenarios/README.md").read_text(encoding="utf-8"))
ROWS = ROW.findall((ROOT / "tests/scenarios/README.md").read_text(encoding="utf-8"))


@cache
def functions_of(file: str) -> frozenset[str]:
    """Names of the test functions of a file; none if there is no such file."""
    path = ROOT / file
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    # A state machine's test is a class that unittest would run.
    machines = (node.targets[0] for node in tree.body if isinstance(node, ast.Assign))
    names = {node.name for node in functions} | {each.id for each in machines if isinstance(each, ast.Name)}
    return frozenset(name for name in names if name.startswith(("test_", "Test")))


def test_every_scenario_from_1_to_68_has_a_row_of_its_own_in_order() -> None:
    assert [int(number) for number, *_ in ROWS] == list(range(1, 69))


@pytest.mark.parametrize(("number", "shown"), [(number, shown) for number, _, shown in ROWS])
def test_each_row_names_tests_that_exist_or_what_brings_them(number: str, shown: str) -> None:
    named = NAMED.findall(shown)
    assert named or shown.startswith("later: "), number
    for file, test in named:
        assert functions_of(file), f"{file} has no tests"
        assert not test or test in functions_of(file), f"{file}::{test}"


def test_every_report_about_gateways_has_a_row_of_its_own() -> None:
    assert len(REPORTS) == len({report for report, *_ in REPORTS}) == 34


@pytest.mark.parametrize(("report", "held", "shown"), REPORTS)
def test_each_report_names_tests_that_exist_or_was_not_found(report: str, held: str, shown: str) -> None:
    named = NAMED.findall(shown)
    assert bool(named) == (held != "not found"), report
    for file, test in named:
        assert test in functions_of(file), f"{file}::{test}"
