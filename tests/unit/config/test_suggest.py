from __future__ import annotations

import pytest

from agora.config.suggest import did_you_mean, nearest

KEYS = ["home", "store.synchronous", "store.busy_timeout", "store.readers", "log.level", "log.file"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("store.synchronus", "store.synchronous"),
        ("Store.Synchronous", "store.synchronous"),
        ("store.busy-timeout", "store.busy_timeout"),
        ("readers", "store.readers"),
        ("level", "log.level"),
        ("hmoe", "home"),
        ("log.levl", "log.level"),
    ],
)
def test_a_mistyped_name_finds_the_one_that_was_meant(written: str, meant: str) -> None:
    assert nearest(written, KEYS) == meant


def test_a_name_like_no_other_finds_nothing() -> None:
    assert nearest("zzzz", KEYS) is None
    assert nearest("zzzz", []) is None


def test_the_hint_names_the_nearest_or_says_what_else_to_do() -> None:
    assert did_you_mean("raeders", KEYS, otherwise="Look it up.") == "Did you mean store.readers?"
    assert did_you_mean("zzzz", KEYS, otherwise="Look it up.") == "Look it up."
