from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.unit.llm.scripted import NAME, Rules, ScriptedModel, until_over

from agora.errors import Cancelled, ModelAnswerUnusable, ModelUnavailable
from agora.llm.extracting import SCHEMA, ModelExtractor
from agora.model.deadline import Deadline
from agora.model.fact import Extracted
from agora.ports.extractor import Extraction

TEXT = """I prefer tabs over
spaces. The billing service listens on port 8,443 since May, no longer on 80. We use Redis for sessions.
Call me <your name>, or just X. Il prezzo è 3,5 euro."""


def fact(key: str, value: Any, quote: str, subject: str | None = None, **more: bool) -> dict[str, Any]:
    return {"subject": subject, "key": key, "value": value, "quote": quote} | {"ended": False, "multi": False} | more


def extracted(
    *facts: dict[str, Any], text: str = TEXT, redact: Callable[[str], str] = str, model: ScriptedModel | None = None
) -> Extraction:
    used = model or ScriptedModel({"facts": list(facts)})
    return ModelExtractor(used, Rules(), redact).extract(text, Deadline(30))


def one(*facts: dict[str, Any]) -> Extracted:
    found = extracted(*facts)
    assert found.problem is None
    assert found.extracted_by == NAME
    [only] = found.facts
    return only


GOOD = fact("datastore", "Redis", "We use Redis for sessions.")


def test_a_fact_that_stands_in_the_text_is_taken_with_its_words() -> None:
    found = one(fact("Session Store", "Redis", "We use Redis for sessions.", "sessions", multi=True))
    quote = "We use Redis for sessions."
    assert found == Extracted("sessions", "session_store", "Redis", quote, multi=True, about={"model": NAME})


def test_the_quote_is_the_slice_of_the_text_whatever_its_white_space() -> None:
    assert one(fact("indentation", "tabs", "I  prefer tabs over spaces")).quote == "I prefer tabs over\nspaces"


@pytest.mark.parametrize("value", [8443, 8443.0, "8,443"])
def test_a_number_stands_in_the_text_in_any_of_its_forms(value: Any) -> None:
    assert one(fact("port", value, "listens on port 8,443", "billing service")).value == value


def test_a_decimal_comma_is_read() -> None:
    assert one(fact("price", 3.5, "Il prezzo è 3,5 euro")).value == 3.5


def test_what_has_ended_is_said_so() -> None:
    assert one(fact("port", 80, "no longer on 80", "billing service", ended=True)).ended


@pytest.mark.parametrize("subject", [None, "", "user", "The user", "I", "speaker"])
def test_whoever_speaks_has_no_name_of_the_models(subject: str | None) -> None:
    assert one(fact("datastore", "Redis", "We use Redis for sessions.", subject)).subject is None


@pytest.mark.parametrize(
    "bad",
    [
        fact("datastore", "Redis", "We use Redis for caching."),
        fact("datastore", "Redis", "we use redis for sessions."),
        fact("datastore", "Redis", ""),
        fact("datastore", "Memcached", "We use Redis for sessions."),
        fact("datastore", "Red", "We use Redis for sessions."),
        fact("datastore", "Redis", "I prefer tabs"),
        fact("port", 8444, "listens on port 8,443"),
        fact("port", 44, "listens on port 8,443"),
        fact("name", "<your name>", "Call me <your name>"),
        fact("name", "X", "or just X"),
        fact("datastore", "", "We use Redis for sessions."),
        fact("", "Redis", "We use Redis for sessions."),
        fact("key", "Redis", "We use Redis for sessions."),
        fact("k" * 129, "Redis", "We use Redis for sessions."),
        fact("datastore", "Redis", "We use Redis for sessions.", "payment service"),
    ],
)
def test_a_fact_that_does_not_stand_in_the_text_is_dropped(bad: dict[str, Any]) -> None:
    assert one(bad, GOOD).key == "datastore"
    assert one(GOOD, bad).value == "Redis"


@pytest.mark.parametrize(
    "value", ["[REDACTED:password]", "{{port}}", "${HOST}", "%PATH%", "___", "...", "N/A", "unknown", "TODO", "value"]
)
def test_what_is_to_be_filled_in_is_never_a_value(value: str) -> None:
    found = extracted(fact("setting", value, f"The setting is {value}"), text=f"The setting is {value}, they say.")
    assert found.extracted_by == "patterns"


def test_facts_come_in_the_order_of_the_text_and_each_once() -> None:
    found = extracted(GOOD, fact("indentation", "tabs", "I prefer tabs"), GOOD | {"quote": "We use Redis"})
    assert [(each.key, each.quote) for each in found.facts] == [
        ("indentation", "I prefer tabs"),
        ("datastore", "We use Redis for sessions."),
    ]


def test_nothing_worth_remembering_gives_nothing_and_is_no_problem() -> None:
    assert extracted() == Extraction((), NAME)


def test_an_empty_text_is_not_sent() -> None:
    model = ScriptedModel({"facts": [GOOD]})
    assert extracted(text=" \n", model=model) == Extraction((), NAME)
    assert model.asked == []


def test_facts_of_which_none_stands_in_the_text_leave_it_to_the_rules() -> None:
    found = extracted(fact("a", "b", "c"), fact("d", "e", "f"))
    assert found.extracted_by == "patterns"
    assert found.problem is not None
    assert "none of the 2 facts" in found.problem


@pytest.mark.parametrize("error", [ModelUnavailable("the server is away"), ModelAnswerUnusable("it is no JSON")])
def test_whatever_goes_wrong_the_rules_find_them_and_it_is_said_why(error: Exception) -> None:
    found = extracted(model=ScriptedModel(error))
    assert [each.key for each in found.facts] == ["by_rules"]
    assert (found.extracted_by, found.problem) == ("patterns", str(error))


def test_a_slow_model_leaves_the_rules_their_time() -> None:
    found = ModelExtractor(ScriptedModel(until_over(0.9)), Rules(), str).extract(TEXT, Deadline(1))
    assert found.extracted_by == "patterns"
    assert found.problem is not None
    assert "in the time" in found.problem


def test_a_call_that_is_over_stays_over() -> None:
    def cancel(_: object, deadline: Deadline) -> Exception:
        deadline.cancel()
        return Cancelled("the call was cancelled")

    with pytest.raises(Cancelled):
        extracted(model=ScriptedModel(cancel))


def test_more_than_a_model_reads_is_not_sent() -> None:
    model = ScriptedModel({"facts": []})
    found = extracted(text="word " * 20_001, model=model)
    assert model.asked == []
    assert found.problem is not None
    assert "too many" in found.problem


def test_secrets_do_not_leave_and_what_stands_for_them_is_no_fact() -> None:
    model = ScriptedModel(
        {"facts": [fact("password", "[REDACTED:password]", "The password is [REDACTED:password]"), GOOD]}
    )
    text = "The password is hunter2hunter2. We use Redis for sessions."
    found = extracted(text=text, model=model, redact=lambda text: text.replace("hunter2hunter2", "[REDACTED:password]"))
    assert "hunter2" not in f"{model.asked}"
    assert [each.key for each in found.facts] == ["datastore"]


def test_the_text_is_sent_between_marks_and_nowhere_else() -> None:
    model = ScriptedModel({"facts": []})
    extracted(model=model)
    [asked] = model.asked
    mark = asked.text.partition("\n")[0].strip("[]")
    assert asked.text == f"[{mark}]\n{TEXT}\n[/{mark}]"
    assert mark in asked.instructions
    assert "Redis" not in asked.instructions
    assert asked.schema == SCHEMA


def test_the_schema_is_one_and_has_what_strict_modes_ask_for() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    item = SCHEMA["properties"]["facts"]["items"]
    for each in (SCHEMA, item):
        assert each["additionalProperties"] is False
        assert set(each["required"]) == set(each["properties"])
    Draft202012Validator(SCHEMA).validate({"facts": [GOOD]})
