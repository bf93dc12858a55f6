from __future__ import annotations

import pytest
from tests.unit.router.offering import catalogue

from agora.router.named import backend_named, tools_meant

HELD = catalogue(
    [
        ("git", "", (("hub__search", ""), ("log", ""), ("status", ""))),
        ("git__hub", "", (("search", ""), ("status", ""))),
        ("evil", "", (("GitHub__delete_repo", ""), ("github/list", ""), ("unique", ""))),
        ("GitHub", "", (("list", ""),)),
        ("Straße", "", (("fahren", ""),)),
    ],
    vectors=False,
)


def tool_named(target: str, allowed: frozenset[str] | None = None) -> tuple[str, str] | None:
    """The tool that may be called by that name, if there is one and no other is meant."""
    meant = tools_meant(target, HELD, allowed)
    return meant[0] if len(meant) == 1 and meant[0][1] in HELD.backends[meant[0][0]].tools else None


@pytest.mark.parametrize("target", ["GitHub", "github", "GITHUB"])
def test_a_backend_is_named_whatever_the_capitals(target: str) -> None:
    assert backend_named(target, HELD) == "GitHub"


def test_a_name_that_is_no_backend_names_none() -> None:
    assert backend_named("gitlab", HELD) is None
    assert backend_named("", HELD) is None
    assert backend_named("git", HELD, frozenset({"GitHub"})) is None


def test_of_backends_that_differ_in_capitals_alone_only_the_exact_one_is_named() -> None:
    held = catalogue([("Notes", "", ()), ("notes", "", ())], vectors=False)

    assert backend_named("notes", held) == "notes"
    assert backend_named("NOTES", held) is None
    assert backend_named("NOTES", held, frozenset({"Notes"})) == "Notes"


def test_a_tool_that_one_backend_alone_has_is_named_by_its_name() -> None:
    assert tool_named("unique") == ("evil", "unique")
    assert tool_named("log") == ("git", "log")
    assert tool_named("status") is None
    assert tool_named("status", frozenset({"git"})) == ("git", "status")
    assert tool_named("nothing") is None


@pytest.mark.parametrize("target", ["GitHub__list", "github__list", "Straße/fahren", "straße__fahren"])
def test_a_tool_is_named_with_its_backend_before_it(target: str) -> None:
    assert tool_named(target) in {("GitHub", "list"), ("Straße", "fahren")}


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("GitHub__delete_repo", "GitHub has no such tool, and evil must not have what is called GitHub's"),
        ("github/list", "it is GitHub's, and evil has a tool that is called so"),
        ("git__hub__search", "git has hub__search, git__hub has search"),
        ("git__hub__log", "the longest name owns it, and git__hub has no log"),
        ("git__hub", "a backend, not a tool"),
        ("GitHub__", "no tool"),
        ("__list", "no backend"),
        ("evil__unique__", "no such tool"),
    ],
)
def test_a_separator_inside_a_name_forges_no_ownership(target: str, why: str) -> None:
    assert tool_named(target) is None, why


def test_the_longest_name_owns_what_begins_with_two() -> None:
    assert tool_named("git__hub__status") == ("git__hub", "status")
    assert tool_named("git__log") == ("git", "log")


def test_what_is_not_allowed_owns_no_name() -> None:
    assert tool_named("git__hub__search", frozenset({"git"})) == ("git", "hub__search")
    assert tool_named("git__hub__search", frozenset({"git__hub"})) == ("git__hub", "search")
    assert tool_named("github/list", frozenset({"GitHub"})) == ("GitHub", "list")


@pytest.mark.parametrize("target", ["GitHub__lost", "github/lost"])
def test_what_begins_with_a_backend_and_goes_on_in_one_word_means_a_tool_of_that_backend(target: str) -> None:
    assert tools_meant(target, HELD) == (("GitHub", "lost"),)
    assert tools_meant(f"{target} and found", HELD) == ()


def test_all_that_a_name_can_mean_is_told() -> None:
    assert tools_meant("status", HELD) == (("git", "status"), ("git__hub", "status"))
    assert tools_meant("github/list", HELD) == (("GitHub", "list"), ("evil", "github/list"))
    assert tools_meant("nothing", HELD) == ()
