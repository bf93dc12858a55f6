from __future__ import annotations

import ast
import importlib.util
import os
import re
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agora.config.settings import SETTINGS, settings_table

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PROJECT: dict[str, Any] = tomllib.loads(PYPROJECT)


def texts() -> Iterator[Path]:
    """Every text file that belongs to the project."""
    folders = ("src", "tests", "bench", "scripts", "docs", ".ci", ".github")
    inside = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    for path in [*inside, *(path for path in ROOT.iterdir() if path.is_file())]:
        if path.suffix in {".py", ".toml", ".md", ".yml", ".sql", ".sh", ".json", ""} and path.name[0] != ".":
            yield path


def requirements() -> list[str]:
    return [
        *PROJECT["build-system"]["requires"],
        *PROJECT["project"]["dependencies"],
        *(item for group in PROJECT["dependency-groups"].values() for item in group),
        *(item for extra in PROJECT["project"].get("optional-dependencies", {}).values() for item in extra),
    ]


@pytest.mark.parametrize("requirement", requirements())
def test_every_dependency_has_a_lower_and_an_upper_bound(requirement: str) -> None:
    bounds = re.sub(r"^[\w.\[\],-]+?(?=[<>=~!;\s]|$)", "", requirement.partition(";")[0]).split(",")
    assert any(bound.strip().startswith(">=") for bound in bounds)
    assert any(re.match(r"<\d", bound.strip()) for bound in bounds)


def test_every_rule_that_ruff_ignores_has_a_reason_beside_it() -> None:
    section = PYPROJECT[PYPROJECT.index("[tool.ruff.lint]") : PYPROJECT.index("[tool.ruff.lint.flake8-tidy")]
    rules = [line for line in section.splitlines() if re.search(r'"[A-Z]+\d*"', line) and "select" not in line]
    assert len(rules) > 20
    assert [line for line in rules if not re.fullmatch(r'\s*"[A-Z]+\d*",\s*# .{6,}', line)] == []


def test_every_suppressed_finding_has_a_reason_beside_it() -> None:
    suppressed = re.compile(r"# noqa\b.*")
    reason = re.compile(r"# noqa: [A-Z]+\d+(?:, ?[A-Z]+\d+)*(?: - |  # ).+")
    bare = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in texts()
        if path.suffix == ".py" and path != Path(__file__).resolve()
        for found in suppressed.finditer(path.read_text(encoding="utf-8"))
        if not reason.fullmatch(found[0])
    ]
    assert bare == []


def test_modules_are_short() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in (ROOT / "src").rglob("*.py")
    }
    assert {name: length for name, length in lengths.items() if length > 400} == {}
    assert statistics.median(length for length in lengths.values() if length > 0) <= 150


def test_no_file_holds_a_path_of_somebodys_machine() -> None:
    # A home folder of nobody in particular may stand in an example.
    machine = re.compile(r"(?<![\w.~}])/(?:root|work|farm)/\w|/(?:home|Users)/(?!you\b|user\b|me\b)\w+/\w")
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in texts()
        for match in machine.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_the_documentation_lists_every_setting_with_default_and_help() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert settings_table() in page
    assert all(setting.help and setting.default for setting in SETTINGS)


def test_the_examples_in_the_documentation_are_valid_configurations(tmp_path: Path) -> None:
    from agora.config.load import load_settings  # noqa: PLC0415 - named here to show what is tested

    loaded = []
    for name in ("configuration.md", "access.md"):
        page = (ROOT / "docs" / name).read_text(encoding="utf-8")
        for example in re.findall(r"```toml\n(.*?)```", page, re.DOTALL):
            (tmp_path / "agora.toml").write_text(example, encoding="utf-8")
            loaded.append(load_settings(env={"AGORA_HOME": str(tmp_path)}).settings)
    assert loaded[0].agent == "reviewer"
    assert [len(settings.access) for settings in loaded] == [0, 1, 0, 3, 2]
    assert [len(settings.backends) for settings in loaded] == [0, 0, 1, 0, 0]


def test_the_set_up_needs_the_standard_library_only_and_old_pythons_can_read_it() -> None:
    source = (ROOT / "run.py").read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 7))
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    }
    assert imported <= sys.stdlib_module_names - {"__future__"}
    first, *_, last = tree.body[:3]
    # Whatever an old version lacks must come after the line that says so.
    assert isinstance(tree.body[1], ast.Import)
    assert isinstance(last, ast.If)
    assert isinstance(first, ast.Expr)


def run_py(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "run.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )


def test_the_set_up_without_a_command_lists_its_commands() -> None:
    done = run_py()
    assert done.returncode == 2
    assert all(f"run.py {command}" in done.stderr for command in ("demo", "test", "check", "agora"))
    assert run_py("--help").returncode == 0


def test_a_mistyped_command_of_the_set_up_gets_a_suggestion() -> None:
    done = run_py("dmeo")
    assert done.returncode == 2
    assert "Did you mean demo?" in done.stderr


def test_the_workflow_runs_what_the_local_gate_runs() -> None:
    gate = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    commands = re.findall(r"^python3 (run\.py .*)$", gate, re.MULTILINE)
    assert commands == ["run.py test", "run.py conformance", "run.py check"]
    assert all(f"run: python {command}\n" in workflow for command in commands)
    for version in ("3.11", "3.12", "3.13"):
        assert f'"{version}"' in workflow
        assert f"Programming Language :: Python :: {version}" in PYPROJECT


GOOD = """
import threading, time
import anyio, pytest
from agora.config.load import load_settings
from agora.memory import notes

def test_x(monkeypatch, tmp_path):
    monkeypatch.setenv("AGORA_HOME", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["agora"])
    monkeypatch.setattr(time, "time", lambda: 0)
    monkeypatch.setattr("agorax.thing", 1)
    threading.Event().wait(0.1)
    settings = load_settings()
    settings.extra = 1
    assert time.monotonic() > 0
"""

BAD = {
    "import unittest.mock": "mock",
    "import unittest.mock as m": "mock",
    "from unittest import mock": "mock",
    "from unittest.mock import patch": "mock",
    "def test_x():\n    from unittest.mock import AsyncMock": "mock",
    "import mock": "mock",
    "def test_x(mocker):\n    pass": "mock",
    'def test_x(monkeypatch):\n    monkeypatch.setattr("agora.memory.notes.save", None)': "replace",
    'def test_x(monkeypatch):\n    monkeypatch.setattr(target="agora.memory", name="x", value=1)': "replace",
    'from agora.memory import notes\nmonkeypatch.setattr(notes, "save", None)': "replace",
    'from agora.memory.notes import Notes as N\nmonkeypatch.setattr(N, "save", None)': "replace",
    'import agora.memory.notes\nmonkeypatch.setattr(agora.memory.notes, "save", None)': "replace",
    'import agora.memory.notes as n\nwith monkeypatch.context() as m:\n    m.delattr(n, "save")': "replace",
    'from agora.app import build\napp = build()\nmonkeypatch.setattr(app.store, "save", None)': "replace",
    "from agora.memory import notes\nnotes.save = None": "replace",
    "import agora.memory.notes\nagora.memory.notes.LIMIT += 1": "replace",
    "import time\ntime.sleep(1)": "sleep",
    "import time as t\nt.sleep(1)": "sleep",
    "from time import monotonic, sleep": "sleep",
    "import time\ndef test_x():\n    pause = time.sleep": "sleep",
}


def lint(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "lint_tests.py"), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_rules_for_tests_leave_honest_tests_alone(tmp_path: Path) -> None:
    (tmp_path / "test_good.py").write_text(GOOD, encoding="utf-8")
    done = lint(tmp_path)
    assert (done.returncode, done.stdout) == (0, "1 test files, 0 findings\n")


def test_the_rules_for_tests_find_each_forbidden_thing_and_name_its_line(tmp_path: Path) -> None:
    for number, source in enumerate(BAD):
        (tmp_path / f"test_{number:02}.py").write_text(source, encoding="utf-8")
    done = lint(tmp_path)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    for number, (source, word) in enumerate(BAD.items()):
        found = [line for line in lines if f"test_{number:02}.py:" in line]
        assert len(found) == 1, source
        assert word in found[0], source
    assert "test_00.py:1: " in lines[0]
    assert lines[-1] == f"{len(BAD)} test files, {len(BAD)} findings"


def run_py_as_a_module() -> Any:
    spec = importlib.util.spec_from_file_location("run_py", ROOT / "run.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_what_tests_start_keeps_its_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", "chosen")
    run_py_as_a_module().ease()
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ
    assert os.environ["PYTEST_DEBUG_TEMPROOT"] == "chosen", "what somebody has set stands"


def test_tests_keep_their_folders_in_memory_only_if_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    module = run_py_as_a_module()
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "")
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", "")
    monkeypatch.delenv("PYTEST_DEBUG_TEMPROOT")
    monkeypatch.setattr(module, "ENOUGH", 1 << 62)
    module.ease()
    assert "PYTEST_DEBUG_TEMPROOT" not in os.environ
