"""What the access tables come to for a connection."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.config.access import AccessTable
from agora.model.access import Door, Grants, Policy, fits
from agora.model.caller import Scope


def table(*namespaces: str, rights: str = "read", **who: Any) -> AccessTable:
    return AccessTable(namespaces, rights, **who)


def grants(*tables: AccessTable, door: Door = "http", shown: str = "", clients: tuple[str, ...] = ()) -> Grants:
    return Policy(tables).grants(door, shown, clients, "acme/shop")


def levels(found: Grants, *namespaces: str) -> list[int]:
    return [found.level(name) for name in namespaces]


def test_without_tables_everybody_may_do_everything() -> None:
    for door in ("command", "local", "http"):
        found = grants(door=door)
        assert levels(found, "acme/shop", "anything") == [3, 3]
        assert found.whole


def test_with_tables_somebody_that_none_is_for_may_do_nothing() -> None:
    for found in (
        grants(table("*", rights="admin", local=True), shown="ci"),
        grants(table("*", rights="admin", tokens=("ci",)), shown="other"),
        grants(table("*", rights="admin", tokens=("ci",))),
        grants(table("*", rights="admin", tokens=("*",))),
        grants(table("*", rights="admin", tokens=("ci",)), door="local"),
    ):
        assert levels(found, "acme/shop", "shared") == [0, 0]
        assert not found.whole


def test_what_the_tables_give_adds_up_whatever_their_order() -> None:
    some = (
        table("shared", rights="read", any=True),
        table("{own}", rights="write", tokens=("ci",)),
        table("shared", "team-*", rights="admin", tokens=("*",)),
    )
    for ordered in (some, some[::-1]):
        assert levels(grants(*ordered, shown="ci"), "shared", "acme/shop", "team-a", "vault") == [3, 2, 3, 0]
        assert levels(grants(*ordered, shown="x"), "shared", "acme/shop", "team-a") == [3, 0, 3]
        assert levels(grants(*ordered), "shared", "acme/shop", "team-a") == [1, 0, 0]


def test_a_backend_is_for_those_whose_tables_name_it() -> None:
    tables = (
        table("*", rights="admin", local=True, backends=("*",)),
        table("{own}", tokens=("ci",), backends=("git*", "files")),
        table("shared", any=True),
        table("*", clients=("codex*",), backends=("github",)),
    )

    def may(*names: str, door: Door = "http", shown: str = "", clients: tuple[str, ...] = ()) -> list[bool]:
        found = grants(*tables, door=door, shown=shown, clients=clients)
        return [found.may_call(name) for name in names]

    assert may("anything", door="local") == [True]
    assert may("GitHub", "files", "graph", shown="ci") == [True, True, False]
    assert may("github", shown="other") == [False]
    assert may("github", "files", shown="ci", clients=("Codex-CLI",)) == [True, False]
    assert grants(shown="ci").may_call("anything")


def test_a_command_of_the_user_is_bound_by_no_table() -> None:
    assert levels(grants(table("shared", any=True), door="command"), "vault") == [3]


def test_a_table_with_clients_takes_and_never_gives() -> None:
    some = (table("*", rights="admin", tokens=("ci",)), table("{own}", rights="write", clients=("codex*",)))
    assert levels(grants(*some, shown="ci"), "acme/shop", "vault") == [3, 3]
    assert levels(grants(*some, shown="ci", clients=("Codex-CLI",)), "acme/shop", "vault") == [2, 0]
    # A name alone is worth nothing.
    assert levels(grants(*some, clients=("codex",)), "acme/shop", "vault") == [0, 0]
    assert not grants(*some, shown="ci", clients=("codex",)).whole


def test_a_table_with_clients_and_tokens_takes_from_these_tokens_alone() -> None:
    some = (table("*", rights="admin", any=True), table("shared", clients=("codex",), tokens=("ci",)))
    assert levels(grants(*some, shown="ci", clients=("codex",)), "shared", "vault") == [1, 0]
    assert levels(grants(*some, shown="x", clients=("codex",)), "shared", "vault") == [3, 3]


def test_programs_that_share_a_connection_hear_what_all_of_them_may_see() -> None:
    some = (
        table("*", rights="admin", any=True),
        table("shared", "a", clients=("codex",)),
        table("shared", "b", clients=("gemini",)),
    )
    assert levels(grants(*some, clients=("codex", "gemini", "other")), "shared", "a", "b") == [1, 0, 0]


names = st.text("ab/-", min_size=0, max_size=8)


@given(names, st.text("ab/-*", max_size=8))
def test_a_pattern_means_what_the_same_regular_expression_means(name: str, pattern: str) -> None:
    expression = ".*".join(map(re.escape, pattern.split("*")))
    assert fits(pattern, name) is (re.fullmatch(expression, name) is not None)


tables_made = st.builds(
    lambda namespaces, rights, **who: AccessTable(tuple(namespaces), rights, **who),
    st.lists(st.sampled_from(["{own}", "shared", "a", "a*", "*"]), min_size=1, max_size=3),
    st.sampled_from(["read", "write", "admin"]),
    tokens=st.sampled_from([(), ("ci",), ("*",)]),
    clients=st.sampled_from([(), ("codex",)]),
    local=st.booleans(),
    any=st.booleans(),
)


@given(st.lists(tables_made, min_size=1), st.sampled_from(["", "ci"]), st.sampled_from(["local", "http"]))
def test_no_name_that_a_program_gives_itself_is_worth_more_than_none(
    tables: list[AccessTable], token: str, door: Door
) -> None:
    plain = grants(*tables, door=door, shown=token)
    named = grants(*tables, door=door, shown=token, clients=("codex",))
    for namespace in ("acme/shop", "shared", "a", "ab", "vault"):
        assert named.level(namespace) <= plain.level(namespace)


@given(st.lists(tables_made, min_size=1, max_size=6), st.sampled_from(["acme/shop", "shared", "a", "ab", "zz"]))
def test_a_name_has_the_most_that_any_table_of_its_own_gives_it(tables: list[AccessTable], name: str) -> None:
    rights = {"read": 1, "write": 2, "admin": 3}

    def held(one: AccessTable) -> int:
        patterns = ("acme/shop" if pattern == "{own}" else pattern for pattern in one.namespaces)
        return rights[one.rights] if any(fits(pattern, name) for pattern in patterns) else 0

    mine = [one for one in tables if one.any or {"ci", "*"} & set(one.tokens) or (one.clients and not one.local)]
    most = max((held(one) for one in mine if not one.clients), default=0)
    assert grants(*tables, shown="ci").level(name) == most
    limits = [held(one) for one in mine if one.clients]
    assert grants(*tables, shown="ci", clients=("codex",)).level(name) == min([most, max(limits, default=3)])


@given(st.lists(tables_made, min_size=1), st.sampled_from(["", "codex"]))
def test_whole_means_that_nothing_whatever_is_hidden(tables: list[AccessTable], client: str) -> None:
    found = grants(*tables, shown="ci", clients=(client,))
    if found.whole:
        assert all(levels(found, "acme/shop", "zzz", "never/heard/of"))


def test_equal_rights_have_one_mark_and_others_another() -> None:
    one = grants(table("a", "b", tokens=("x",)), shown="x")
    same = grants(table("b", "a", tokens=("y",)), shown="y")
    more = grants(table("a", "b", rights="write", tokens=("x",)), shown="x")
    assert one.mark == same.mark
    assert len({one.mark, more.mark, grants().mark}) == 3


@pytest.mark.parametrize(
    ("also", "visible", "searched"),
    [((), ("shared",), ("shared",)), (("team-a", "vault"), ("shared", "team-a"), ("shared",))],
)
def test_a_scope_shows_what_is_reached_and_allowed(
    also: tuple[str, ...], visible: tuple[str, ...], searched: tuple[str, ...]
) -> None:
    rights = grants(table("shared", "team-*", rights="write", any=True))
    scope = Scope("acme/shop", "test", frozenset({"shared", *also}), rights)
    assert scope.visible() == visible
    assert scope.searched() == searched
    assert scope.may("write", "team-a") is ("team-a" in also)
    assert not scope.may("admin", "shared")


@pytest.mark.parametrize("door", ["local", "http"])
def test_who_makes_up_names_of_programs_makes_no_new_rights_to_be_kept(door: Door) -> None:
    policy = Policy([table("*", rights="admin", any=True), table("shared", clients=("codex*",)), table(clients=("b",))])
    known = policy.known(f"codex-{number}" for number in range(10_000))
    assert len(known) == 1
    assert policy.known(["Codex-9"]) == known
    again = policy.known(["codex"])
    assert policy.granted(door, "ci", known, "acme/shop") is policy.granted(door, "ci", again, "acme/shop")
    assert policy.known(["other", ""]) == frozenset()


def test_a_name_is_looked_up_among_a_hundred_tables_in_a_few_microseconds() -> None:
    many = [table(f"team-{number}-*", f"other-{number}", tokens=("ci",)) for number in range(100)]
    found, began = grants(*many, shown="ci"), time.thread_time()
    for number in range(2_000):
        found.level(f"new-{number}")
    # It must stay below 50 on a quiet machine, and takes some 8; this one may be busy.
    assert (time.thread_time() - began) / 2_000 < 75e-6
