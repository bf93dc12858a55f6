"""The documentation says what is there, and nothing that is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.generate_docs import errors_page, tools_page
from typer.main import get_command

from agora import errors
from agora.cli.main import app
from agora.errors import AgoraError
from agora.protocol.tools.table import CALLABLE, TABLE

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]
WRITTEN = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
# Named as what will come, by the error that needs it.
TO_COME: set[str] = set()


def code(page: Path) -> Iterator[str]:
    """Every line of a code block and every code span of a page."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield from block.splitlines()
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize(("name", "page"), [("tools.md", tools_page), ("errors.md", errors_page)])
def test_the_reference_pages_are_what_the_tables_say(name: str, page: object) -> None:
    assert callable(page)
    written = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert written == page(), "run `python scripts/generate_docs.py`"


def test_every_tool_and_every_command_is_documented_in_the_readme_too() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for tool in TABLE:
        assert tool.name in readme
    for command in COMMANDS:
        assert f"agora {command}" in WRITTEN


def test_every_error_code_is_documented() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, AgoraError)]
    codes = [kind.code for kind in kinds]
    assert len(set(codes)) == len(codes), "a code means one error"
    assert not [each for each in codes if f"`{each}`" not in WRITTEN]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_page_shows_exists_with_its_options(page: Path) -> None:
    for line in code(page):
        for name, rest in re.findall(
            r"(?:^|-- |\(|\| |&& )agora ([a-z]+(?:-[a-z]+)*)\b([^|&;#]*)", line.removeprefix("$ ")
        ):
            if name in TO_COME:
                continue
            assert name in COMMANDS, line
            command = COMMANDS[name]
            if hasattr(command, "commands"):
                sub = (rest.split() or [""])[0]
                assert not re.fullmatch(r"[a-z-]+", sub) or sub in command.commands, line
                command = command.commands.get(sub, command)
            known = {option for param in command.params for option in param.opts} | {"--help"}
            shown = re.findall(r"(?<!\S)(--?[a-z][a-z-]*)", re.sub(r'"[^"]*"', "", rest))
            assert set(shown) <= known, line
        for name in re.findall(r"python run\.py ([a-z]+)", line):
            assert f'"{name}"' in (ROOT / "run.py").read_text(encoding="utf-8"), line
        for name in re.findall(r"\bagora_[a-z]+", line):
            assert name in CALLABLE, line


@pytest.mark.parametrize("page", [*PAGES, ROOT / "ARCHITECTURE.md"], ids=lambda page: page.name)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_path_that_the_architecture_names_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for name in re.findall(r"`((?:\w+/)+\w+\.py)`", text):
        assert (ROOT / "src/agora" / name).exists() or (ROOT / name).exists(), name
