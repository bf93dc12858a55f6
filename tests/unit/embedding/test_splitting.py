from __future__ import annotations

import itertools
import random
import re
import threading
import unicodedata
from typing import Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agora.embedding.loading import Loaded
from agora.embedding.onnx import OnnxEncoder
from agora.embedding.splitting import LONGEST, WHOLE, WINDOW, split
from agora.errors import Cancelled, DeadlineExceeded
from agora.model.deadline import Deadline
from agora.model.profile import Span

ROOM = 254
WORDS = re.findall(
    r"\w+",
    "the server keeps a queue of jobs and each worker takes one after another until none is left so we count "
    "them at night when traffic is low and write the number to the ledger together with its date and owner",
)

parts = st.sampled_from(
    [
        "word",
        "deployment",
        "数据库",
        "ошибка",
        "e\u0301",
        "👩‍👩‍👧‍👦",
        "👋🏽",
        "🇮🇹",
        "x" * 130,
        "café",
        "\ud800",
        "\0",
        "¯\\_(ツ)_/¯",
    ]
)
gaps = st.sampled_from([" ", "", "\n", "\n\n", ". ", "! ", "。", "    ", "\t", ", ", " " * 300])
texts = st.lists(st.tuples(parts, gaps, st.integers(1, 60)), max_size=30).map(
    lambda rows: "".join((part + gap) * times for part, gap, times in rows)
)


@pytest.fixture
def model(encoder: OnnxEncoder) -> Loaded:
    assert encoder._model is not None
    return encoder._model


def prose(characters: int, seed: int = 1) -> str:
    """Sentences and lines without any meaning."""
    rng = random.Random(seed)  # noqa: S311 - the same filler at every run, not a secret
    made, length = [], 0
    while length < characters:
        sentence = " ".join(rng.choices(WORDS, k=rng.randint(4, 25))).capitalize() + rng.choice(
            [". ", ". ", ".\n", "? "]
        )
        made.append(sentence)
        length += len(sentence)
    return "".join(made)


def check(text: str, spans: tuple[Span, ...], model: Loaded) -> None:
    """What holds for every text."""
    assert spans[0].start == 0
    assert spans[-1].stop == len(text)
    for before, after in itertools.pairwise(spans):
        # Onwards, without a gap.
        assert before.start < after.start <= before.stop < after.stop
    for span in spans:
        assert len(model.offsets(text[span.start : span.stop])) <= WHOLE


@given(texts)
@example("")
@example("a" * 30_000)
@example("word " * WHOLE)
@example("word " * (WHOLE + 1))
@example("\u0301" * 30_000)
@example(("x" * 99 + "y" * 99 + ",") * 400)
# One unknown piece, that becomes ninety when it is cut at the control character.
@example("a " * 89 + ("qj" * 47 + "\x1f" + "qj" * 47 + ",") * 90)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_passages_cover_a_text_in_order_and_the_model_reads_each_whole(
    encoder: OnnxEncoder, model: Loaded, text: str
) -> None:
    check(text, encoder.split(text, Deadline(60)), model)


@given(st.text(max_size=3000))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_passages_cover_any_characters(encoder: OnnxEncoder, model: Loaded, text: str) -> None:
    check(text, encoder.split(text, Deadline(60)), model)


@pytest.mark.parametrize("text", ["", " ", "\n" * 5000, "\0" * 5000, "one sentence", " " * 900 + "x", "word " * WHOLE])
def test_what_fits_is_one_passage(encoder: OnnxEncoder, text: str) -> None:
    assert encoder.split(text, Deadline(60)) == (Span(0, len(text)),)


def test_white_space_at_the_end_makes_no_passage(encoder: OnnxEncoder) -> None:
    text = prose(5000)
    blank = "\n " * 50_000
    spans = encoder.split(text, Deadline(60))
    assert encoder.split(text + blank, Deadline(60)) == (*spans[:-1], Span(spans[-1].start, len(text + blank)))


@pytest.mark.parametrize(
    "text",
    [
        prose(60_000),
        "修改配置后必须重启服务器。" * 1500,
        "Ошибки при оплате нельзя скрывать. " * 900,
        "👩‍👩‍👧‍👦 ok " * 4000,
    ],
    ids=["english", "chinese", "russian", "emoji"],
)
def test_neighbours_share_some_twenty_to_forty_pieces(encoder: OnnxEncoder, model: Loaded, text: str) -> None:
    spans = encoder.split(text, Deadline(60))
    check(text, spans, model)
    shared = [len(model.offsets(text[after.start : before.stop])) for before, after in itertools.pairwise(spans)]
    assert len(shared) > 10
    assert min(shared) >= 15
    assert max(shared) <= 45
    assert max(len(model.offsets(text[span.start : span.stop])) for span in spans[:-1]) <= WINDOW


def test_passages_end_where_sentences_end(encoder: OnnxEncoder) -> None:
    text = prose(60_000)
    spans = encoder.split(text, Deadline(60))
    assert {text[: span.stop].rstrip()[-1] for span in spans} <= {".", "?"}
    assert all(text[span.stop - 1].isspace() and not text[span.stop].isspace() for span in spans[:-1])


def test_a_paragraph_end_is_better_than_a_sentence_end(encoder: OnnxEncoder) -> None:
    text = ("A short sentence here. " * 20 + "The end of it all.\n\n") * 20
    assert all(text[: span.stop].endswith("\n\n") for span in encoder.split(text, Deadline(60)))


@pytest.mark.parametrize("unit", ["👩‍👩‍👧‍👦", "e\u0301\u0323", "👋🏽", "❤️", "ก็", "נֻּ"], ids=ascii)
def test_no_passage_begins_or_ends_inside_a_joined_character(encoder: OnnxEncoder, unit: str) -> None:
    # No white space, no punctuation: every cut is in the middle of a word.
    for text in (unit * 9000, (unit * 3 + "x") * 9000):
        spans = encoder.split(text, Deadline(60))
        assert len(spans) >= 3
        marks = {mark for span in spans for mark in (span.start, span.stop)}
        period = len(text) // 9000
        assert {mark % period % len(unit) for mark in marks} == {0}


def test_spans_count_code_points(encoder: OnnxEncoder) -> None:
    # Four bytes and two UTF-16 units a character; the offsets must not count either.
    text = "𝒳𐍈🚀漢 " * 400
    spans = encoder.split(text, Deadline(60))
    assert spans[-1].stop == len(text) == 2000
    assert all(text[span.start] != " " and text[span.stop - 1] == " " for span in spans)


def test_a_sentence_at_the_end_of_a_long_note_is_found(encoder: OnnxEncoder) -> None:
    needle = "The spare key of the greenhouse hangs behind the blue watering can."
    text = prose(20_000 - len(needle), seed=3) + needle
    assert 20_000 <= len(text) < 20_300
    spans = encoder.split(text, Deadline(60))
    holding = [number for number, span in enumerate(spans) if needle in text[span.start : span.stop]]
    assert holding == [len(spans) - 1]
    query = encoder.encode("where can I find the extra key for the greenhouse?", Deadline(60))
    scores = np.array([query @ encoder.encode(text[span.start : span.stop], Deadline(60)) for span in spans])
    assert int(scores.argmax()) == holding[0]
    whole = float(query @ encoder.encode(text, Deadline(60)))
    # The encoder alone does not see it, and no other passage comes near.
    assert scores.max() > 0.1 + max(whole, *np.sort(scores)[:-1])


@pytest.mark.parametrize("at", [0.1, 0.37, 0.5, 0.81])
def test_a_sentence_anywhere_is_whole_in_some_passage(encoder: OnnxEncoder, at: float) -> None:
    needle = "The spare key of the greenhouse hangs behind the blue watering can. "
    filler = prose(20_000, seed=int(at * 100))
    cut = filler.index(". ", int(len(filler) * at)) + 2
    text = filler[:cut] + needle + filler[cut:]
    assert any(needle in text[span.start : span.stop] for span in encoder.split(text, Deadline(60)))


@pytest.mark.parametrize(
    "text",
    ["a" * 1_000_000, prose(1_000_000), "数据库连接失败" * 48_000, " " * 500_000 + "word" + " " * 499_996],
    ids=["no space", "prose", "chinese", "blank"],
)
def test_a_megabyte_is_split_within_its_time(encoder: OnnxEncoder, text: str) -> None:
    spans = encoder.split(text, Deadline(60))
    assert spans[-1].stop == len(text)
    assert all(span.stop - span.start <= LONGEST or text[span.start : span.stop].strip() == "word" for span in spans)


def test_a_long_split_stops_when_its_time_is_over(encoder: OnnxEncoder) -> None:
    with pytest.raises(DeadlineExceeded):
        encoder.split(prose(1_000_000), Deadline(0.2))


def test_a_split_that_is_cancelled_stops_at_its_next_passage(model: Loaded) -> None:
    deadline, calls = Deadline(3600), []
    cancelled = threading.Event()

    def pieces(text: str) -> list[tuple[int, int]]:
        calls.append(len(text))
        if len(calls) == 5:
            deadline.cancel()
            cancelled.set()
        return model.offsets(text)

    with pytest.raises(Cancelled):
        split(prose(1_000_000), pieces, ROOM, deadline)
    assert cancelled.is_set()
    assert len(calls) <= 7


def test_no_look_ahead_is_longer_than_a_block(model: Loaded) -> None:
    lengths = []

    def pieces(text: str) -> list[tuple[int, int]]:
        lengths.append(len(text))
        return model.offsets(text)

    split("a" * 200_000 + ("Qm" * 2000 + "\n") * 50 + prose(200_000), pieces, ROOM, Deadline(60))
    assert max(lengths) <= LONGEST


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_offsets_of_decomposed_text_point_at_its_words(model: Loaded, form: Literal["NFC", "NFD"]) -> None:
    words = [unicodedata.normalize(form, word) for word in ("città", "perché", "naïve", "Ёлка")]
    text = " ".join(words)
    starts = {start for start, _ in model.offsets(text)}
    assert {text.index(word) for word in words} <= starts
    assert max(stop for _, stop in model.offsets(text)) == len(text)
