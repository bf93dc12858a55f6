"""Summaries and facts with a real language model, small enough for any machine: the shape of what comes, not its words.

Part of `python run.py conformance`, which installs the server and fetches the model.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from tests.conformance.small_model import PLACE
from tests.unit.llm.scripted import Rules, message

from agora.config.language_model import ModelSettings
from agora.errors import ModelAnswerUnusable, ModelUnavailable
from agora.llm.choosing import summary_model
from agora.llm.extracting import ModelExtractor
from agora.llm.writing import ModelSummarizer
from agora.model.deadline import Deadline
from agora.ports.language_model import Asked, LanguageModel

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0

pytestmark = pytest.mark.skipif(
    (importlib.util.find_spec("xllamacpp") is None or not PLACE.exists())
    and os.environ.get("AGORA_TEST_MODEL") != "required",
    reason="no server or no model: python run.py conformance",
)

CHOICE = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "green"]}, "known": {"type": "boolean"}},
    "required": ["colour", "known"],
    "additionalProperties": False,
}
TEXT = "We use PostgreSQL for the billing service. It listens on port 5433. I prefer tabs over spaces."


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    errors = tmp_path_factory.mktemp("small-model") / "stderr.txt"
    with errors.open("wb") as opened:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.conformance.small_model"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=opened,
            text=True,
            cwd=ROOT,
        )
    late = threading.Timer(PATIENCE, process.kill)
    late.start()
    assert process.stdout is not None
    match = re.match(r"listening on (\S+)", process.stdout.readline())
    try:
        assert match, errors.read_text("utf-8", "replace")
        yield match[1]
    finally:
        late.cancel()
        process.kill()
        process.communicate(timeout=30)


def model(url: str, **wanted: object) -> LanguageModel:
    usual = {"adapter": "openai", "url": url, "summary_model": "smollm2", "max_tokens": 80, "timeout": PATIENCE}
    found = summary_model(ModelSettings.model_validate({**usual, **wanted}))
    assert found is not None
    return found


def all_founded(text: str, sources: Sequence[str]) -> tuple[str, ...]:
    del text, sources
    return ()


def soon() -> Deadline:
    return Deadline(PATIENCE)


def test_a_text_is_answered_and_counted(url: str) -> None:
    asked = model(url)
    with suppress(ModelAnswerUnusable):
        # It may not know when to stop.
        found = asked.complete(Asked("Answer with one word.", "Are you ready?", 80), soon())
        assert found.text
        assert found.value is None
    assert asked.details()["input_tokens"] > 0
    assert 0 < asked.details()["output_tokens"] <= 80
    asked.close()


@pytest.mark.parametrize("mode", ["schema", "object"])
def test_json_is_answered_as_the_schema_asks_or_not_used(url: str, mode: str) -> None:
    asked = model(url, json_mode=mode)
    try:
        found = asked.complete(Asked("Say which colour grass has.", "Grass.", 80, CHOICE), soon())
        assert found.value["colour"] in {"red", "green"}
        assert isinstance(found.value["known"], bool)
    except ModelAnswerUnusable:
        # A server that is told no schema answers with whatever it likes.
        assert mode == "object"
    asked.close()


def test_a_cut_off_answer_is_known_as_one(url: str) -> None:
    asked = model(url)
    with pytest.raises(ModelAnswerUnusable, match="cut off"):
        asked.complete(Asked("Tell a long story.", "About a dog.", 5), soon())
    assert asked.details()["output_tokens"] == 5
    asked.close()


def test_a_wrong_address_is_an_error_that_no_repetition_follows(url: str) -> None:
    asked = model(f"{url}/elsewhere")
    with pytest.raises(ModelUnavailable, match="404") as caught:
        asked.complete(Asked("a", "b", 5), soon())
    assert not caught.value.retryable
    assert asked.details()["retries"] == 0
    asked.close()


def test_a_request_that_is_left_does_not_stop_the_next(url: str) -> None:
    hasty, patient = model(url, timeout=0.05), model(url)
    with pytest.raises(ModelUnavailable, match=r"0\.05 s"):
        hasty.complete(Asked("Tell a long story.", "About a dog.", 80), soon())
    with pytest.raises(ModelAnswerUnusable, match="cut off"):
        patient.complete(Asked("Tell a long story.", "About a dog.", 5), soon())
    hasty.close()
    patient.close()


def test_a_summary_is_the_models_or_says_why_not(url: str) -> None:
    asked = model(url)
    summarizer = ModelSummarizer(asked, Rules(), str, all_founded, max_tokens=80)
    messages = [message(each, number) for number, each in enumerate(TEXT.split(". "), 1)]
    found = summarizer.fold(None, messages, 60, 200, soon())
    assert found.text
    assert (found.written_by == asked.name) == (found.problem is None)
    assert len(found.text.split()) <= 60
    asked.close()


def test_facts_stand_in_the_text_or_come_from_the_rules(url: str) -> None:
    asked = model(url)
    found = ModelExtractor(asked, Rules(), str, max_tokens=80).extract(TEXT, soon())
    assert (found.extracted_by == asked.name) == (found.problem is None)
    assert all(each.quote in TEXT for each in found.facts)
    asked.close()
