"""Whose facts a context has, and that one model for two kinds of work is one object."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agora.app.agora import Agora
from agora.app.conversing import known_of
from agora.app.language_models import LanguageModels
from agora.config.language_model import ModelSettings
from agora.config.load import load_settings
from agora.config.logs import get_logger
from agora.errors import ConfigError
from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.model.fact import FactDraft
from agora.text.tokens import cost

URL = "http://127.0.0.1:9/v1"


@pytest.fixture
def agora(tmp_path: Path) -> Iterator[Agora]:
    made = Agora(load_settings({"home": str(tmp_path)}, {}))
    yield made
    made.close()


def caller(own: str = "acme/shop") -> Caller:
    return Caller(Scope(own, "test"), "tester", "s", "test")


def keep(agora: Agora, subject: str, value: str, namespace: str = "acme/shop") -> None:
    draft = FactDraft(namespace, subject, "editor", value)
    agora.facts.remember(draft, caller(namespace), Deadline(30))


def known(agora: Agora, *subjects: str, budget: int = 500, namespace: str = "acme/shop") -> list[str]:
    found = known_of(agora.facts)(subjects, namespace, budget, caller(), Deadline(30))
    assert cost(found) <= budget
    return found.splitlines()


def test_each_subject_has_a_block_of_its_own_once_and_the_user_comes_last(agora: Agora) -> None:
    for subject, value in (("user", "vim"), ("Ann", "Helix"), ("Bob", "nano")):
        keep(agora, subject, value)
    keep(agora, "ann", "ed", "shared")
    keep(agora, "ann", "emacs", "acme/other")
    assert known(agora, "Bob", "ANN", "ann", "nobody", "User") == [
        *("What you know about Bob:", "- editor: nano"),
        *("What you know about ann:", "- editor: Helix"),
        *("What you know about this user:", "- editor: vim"),
    ]


def test_what_the_budget_does_not_hold_is_left_out_from_the_end(agora: Agora) -> None:
    for subject in ("Ann", "Bob", "user"):
        keep(agora, subject, "Helix")
    assert known(agora, "Ann", "Bob", budget=25) == [
        *("What you know about Ann:", "- editor: Helix"),
        *("What you know about Bob:", "- editor: Helix"),
    ]
    assert known(agora, "Ann", budget=10) == []


def test_only_so_many_subjects_are_looked_for(agora: Agora) -> None:
    keep(agora, "the last of all", "Helix")
    assert known(agora, *(f"speaker {n}" for n in range(12)), "the last of all") == []


def test_one_model_for_both_kinds_of_work_is_one_object_and_two_are_two() -> None:
    log = get_logger("test")
    one = LanguageModels(ModelSettings(adapter="openai", url=URL, summary_model="words", extraction_model="words"), log)
    assert one.summary is one.extraction
    assert [each["used_for"] for each in one.details()] == [["summaries", "facts"]]
    one.close()
    two = LanguageModels(
        ModelSettings(adapter="openai", url=URL, summary_model="words", extraction_model="others"), log
    )
    assert [each["used_for"] for each in two.details()] == [["summaries"], ["facts"]]
    two.close()
    none = LanguageModels(ModelSettings(extract_from_conversations=True), log)
    assert (none.summary, none.extraction, none.details()) == (None, None, [])
    none.close()


def test_settings_that_name_a_model_and_no_adapter_are_refused() -> None:
    with pytest.raises(ConfigError, match="asks no model"):
        LanguageModels(ModelSettings(summary_model="words"), get_logger("test"))
