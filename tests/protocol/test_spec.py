"""The suite that runs over every transport says where its behaviours come from, and the documentation shows it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.protocol.spec import SITE, behaviours, table

DOCUMENT = Path(__file__).parents[2] / "docs" / "protocol.md"
SECTION = re.compile(r"(2025-11-25|2026-07-28)/(basic|server/[a-z]+|client/[a-z]+)(/[a-z/-]+)?#[a-z0-9-]+")
ALL = [test for tests in behaviours().values() for test in tests]


def test_every_behaviour_names_its_sections() -> None:
    assert len(ALL) > 50
    assert [test.name for test in ALL if not test.sections] == []
    assert [section for test in ALL for section in test.sections if not SECTION.fullmatch(section)] == []


def test_a_behaviour_is_stated_once() -> None:
    names = [test.name for test in ALL]
    assert sorted(set(names)) == sorted(names)


def test_both_revisions_and_every_part_of_a_server_are_there() -> None:
    pages = {section.partition("#")[0] for test in ALL for section in test.sections}
    assert {
        *("2025-11-25/basic", "2025-11-25/basic/lifecycle", "2025-11-25/basic/utilities/cancellation"),
        *("2025-11-25/basic/utilities/ping", "2025-11-25/basic/utilities/progress", "2025-11-25/client/roots"),
        *("2025-11-25/server/tools", "2025-11-25/server/resources", "2025-11-25/server/prompts"),
        *("2025-11-25/server/utilities/completion", "2025-11-25/server/utilities/logging"),
        *("2025-11-25/server/utilities/pagination", "2026-07-28/basic", "2026-07-28/basic/versioning"),
        *("2026-07-28/basic/patterns/cancellation", "2026-07-28/basic/patterns/progress"),
        *("2026-07-28/basic/patterns/subscriptions", "2026-07-28/basic/transports/streamable-http"),
        *("2026-07-28/server/discover", "2026-07-28/server/tools", "2026-07-28/server/resources"),
        *("2026-07-28/server/prompts", "2026-07-28/server/utilities/caching", "2026-07-28/server/utilities/completion"),
        *("2026-07-28/server/utilities/logging", "2026-07-28/server/utilities/pagination"),
    } <= pages


def test_the_documentation_lists_every_behaviour_with_its_sections() -> None:
    assert table() in DOCUMENT.read_text("utf-8"), "python -m tests.protocol.spec prints the table"
    assert SITE in table()
