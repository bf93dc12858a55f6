from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from agora.config.load import load_settings
from agora.config.patterns import fault
from agora.errors import ConfigError


@pytest.mark.parametrize(
    "pattern",
    [
        "AKIAIOSFODNN7EXAMPLE",
        r"ghp_x+",
        r"(?i)test-.*",
        r"(?:live|test)_[a-z]{8,32}",
        r"(?:ab){3}c*",
        r"[+*?|]{3}x",
        r"\+\*\?\|",
        r"(?P<name>x)y",
        r"(?#a+b)c",
        r"[]a+]+",
        r"a++b",
    ],
)
def test_a_plain_pattern_may_be_used(pattern: str) -> None:
    assert fault(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "no regular expression"),
        ("x" * 201, "more than 200 characters"),
        (r"(a+)+", "can take for ever"),
        (r"(a|a)*", "can take for ever"),
        (r"(?:a|ab){20}", "can take for ever"),
        (r"((?:x{2,3})y){4}", "can take for ever"),
        (r"a?b?c?d?", "4 parts of varying length"),
        (r"(a)\1", "refers back"),
        (r"(?P<n>a)(?P=n)", "refers back"),
    ],
)
def test_a_pattern_that_could_take_for_ever_is_refused_with_the_reason(pattern: str, why: str) -> None:
    assert why in str(fault(pattern))


@pytest.mark.parametrize("pattern", [r"a*a*a*b", r"[a-z]+[a-m]+[a-k]+\d", r"(?:aa){2}a*.*a{1,90}b"])
def test_the_worst_pattern_that_is_let_in_ends_soon(pattern: str) -> None:
    assert fault(pattern) is None
    began = time.process_time()
    assert re.compile(pattern).fullmatch("a" * 128) is None
    assert time.process_time() - began < 0.5


def test_a_wrong_pattern_names_its_place_and_itself(tmp_path: Path) -> None:
    (tmp_path / "agora.toml").write_text("[redaction]\nallow = ['fine', '(a+)+']\n", encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load_settings({}, {"AGORA_HOME": str(tmp_path)})
    assert "agora.toml:2: redaction.allow" in refused.value.message
    assert "'(a+)+' cannot be used: a repeat" in refused.value.message


def test_patterns_in_the_environment_stand_apart_by_blanks_so_that_they_may_hold_commas(tmp_path: Path) -> None:
    loaded = load_settings({}, {"AGORA_HOME": str(tmp_path), "AGORA_REDACTION_ALLOW": r"a{2,3} b\s"})
    assert loaded.settings.redaction.allow == ("a{2,3}", r"b\s")
