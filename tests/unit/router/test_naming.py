"""Names of what belongs to other servers: accepted by every client, and nobody's but their owner's."""

from __future__ import annotations

import re
import string
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from agora.router.naming import LONGEST, table_of

ACCEPTED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PARTS = st.text(string.ascii_letters[:2] + "_-.é/ ", min_size=1, max_size=40)


def test_a_plain_name_says_whose_it_is() -> None:
    assert table_of([("github", "search_issues")]) == {"github__search_issues": ("github", "search_issues")}


def test_what_clients_refuse_is_replaced_and_told_apart_by_a_hash() -> None:
    owned = [("web", "read.page"), ("web", "read/page"), ("web", "read page"), ("web", "x" * 200), ("web", "лес")]
    table = table_of(owned)
    assert sorted(table.values()) == sorted(owned)
    assert all(ACCEPTED.fullmatch(name) for name in table)
    assert {name[:14] for name in table} == {
        "web__read_page",
        "web__xxxxxxxxx",
        "web_____" + name_of(table, "лес")[8:14],
    }


def name_of(table: dict[str, tuple[str, str]], tool: str) -> str:
    return next(name for name, (_, each) in table.items() if each == tool)


def test_a_separator_in_a_name_takes_nobodys_name() -> None:
    for owned in permutations([("a_", "b"), ("a", "_b"), ("a", "c")]):
        table = table_of(owned)
        assert "a___b" not in table, "it would be anybody's"
        assert table["a__c"] == ("a", "c")
        assert sorted(table.values()) == sorted(owned)


def test_a_name_made_to_look_like_anothers_hash_gets_one_of_its_own() -> None:
    made = name_of(table_of([("web", "read page")]), "read page")
    forged = made.removeprefix("web__")
    table = table_of([("web", "read page"), ("web", forged)])
    assert table[made] == ("web", "read page")
    assert name_of(table, forged) != made


def test_names_of_this_servers_own_tools_stay_its_own() -> None:
    table = table_of([("agora_", "x"), ("b", "y")], taken={"agora___x"})
    assert "agora___x" not in table
    assert table["b__y"] == ("b", "y")


@given(st.lists(st.tuples(PARTS, PARTS), max_size=12), st.randoms())
def test_every_name_is_accepted_has_one_owner_and_depends_on_no_order(
    owned: list[tuple[str, str]], randoms: object
) -> None:
    table = table_of(owned)
    assert sorted(table.values()) == sorted(set(owned))
    assert all(ACCEPTED.fullmatch(name) and len(name) <= LONGEST for name in table)
    mixed = list(owned)
    randoms.shuffle(mixed)  # type: ignore[attr-defined]
    assert table_of(mixed) == table
