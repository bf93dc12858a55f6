"""What every encoder does, asked through the port alone."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.integration.embedding_server import EmbeddingServer

from agora.embedding.folder import Given
from agora.embedding.onnx import OnnxEncoder, packaged_model
from agora.embedding.remote import RemoteEncoder, RemoteModel
from agora.errors import AgoraError
from agora.model.deadline import Deadline
from agora.ports.encoder import Encoder, Vector
from agora.testing import FakeEncoder

TINY = Path(__file__).resolve().parents[1] / "data" / "embedding" / "tiny"

Maker = Callable[[], Encoder]


def fake() -> Encoder:
    return FakeEncoder(384)


def onnx() -> Encoder:
    return OnnxEncoder(packaged_model("all-MiniLM-L6-v2-int8"), threads=1)


def folder() -> Encoder:
    """A graph and its tokenizer, as an export leaves them."""
    return OnnxEncoder(TINY / "tokens.onnx", given=Given(pooling="mean"))


@cache
def server() -> EmbeddingServer:
    """A real server on loopback; it ends with the process."""
    return EmbeddingServer(384).__enter__()


def remote() -> Encoder:
    return RemoteEncoder(RemoteModel("words", server().url, dimension=384, batch=2))


MAKERS: dict[str, Maker] = {"fake": fake, "onnx": onnx, "folder": folder, "remote": remote}
TEXTS = {
    "one word": "cache",
    "a sentence": "The deploy failed because the token had expired.",
    "blank": " \n\t",
    "Chinese": "数据库连接超时，请检查配置。",
    "Russian, Italian, emoji": "Ошибка è già corretta 🚀",
    "long": "The retry limit is three. " * 400 + "The zebra crosses at noon.",
    "no blanks": "x" * 5000,
    "Chinese, long": "数据库连接超时。" * 500,
    "symbols": "<|>{}[]()=> ::" * 50,
}


@pytest.fixture(params=MAKERS, scope="module")
def maker(request: pytest.FixtureRequest) -> Iterator[Maker]:
    made: list[Encoder] = []

    def make() -> Encoder:
        made.append(MAKERS[request.param]())
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(scope="module")
def encoder(maker: Maker) -> Encoder:
    return maker()


def soon() -> Deadline:
    return Deadline(60)


def test_the_fingerprint_is_known_before_anything_is_loaded_and_always_the_same(maker: Maker) -> None:
    one, other = maker(), maker()
    assert one.fingerprint == other.fingerprint
    assert one.fingerprint.digest() == other.fingerprint.digest()
    assert one.state in {"cold", "ready"}
    assert one.fingerprint.dimension > 0


def test_the_files_are_whole(encoder: Encoder) -> None:
    encoder.verify()


@pytest.mark.parametrize("name", TEXTS)
def test_a_vector_is_a_unit_of_float32(encoder: Encoder, name: str) -> None:
    vector = encoder.encode(TEXTS[name], soon())
    assert vector.dtype == np.float32
    assert vector.shape == (encoder.fingerprint.dimension,)
    assert np.isfinite(vector).all()
    assert abs(float(np.linalg.norm(vector.astype(np.float64))) - 1) < 1e-5


def test_a_vector_depends_on_its_text_alone(encoder: Encoder) -> None:
    alone = [encoder.encode(text, soon()) for text in TEXTS.values()]
    again = [encoder.encode(text, soon()) for text in reversed(TEXTS.values())]
    for one, other in zip(alone, reversed(again), strict=True):
        assert np.array_equal(one, other)


def test_many_texts_at_once_give_the_vectors_that_each_gives_alone(encoder: Encoder) -> None:
    alone = [encoder.encode(text, soon()) for text in TEXTS.values()]
    together = encoder.encode_all(list(TEXTS.values()), soon())
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one, other)
    assert encoder.encode_all([], soon()) == []


def test_a_question_has_a_vector_in_the_same_space(encoder: Encoder) -> None:
    # None of these models has a prefix, so that both must agree.
    asked, found = encoder.encode_question("why retry", soon()), encoder.encode("why retry", soon())
    assert np.array_equal(asked, found)


def test_it_can_be_used_again_after_it_let_its_connections_go(maker: Maker) -> None:
    encoder = maker()
    before = encoder.encode("x", soon())
    encoder.close()
    encoder.close()
    assert np.array_equal(encoder.encode("x", soon()), before)


def test_near_texts_are_nearer_than_far_ones(encoder: Encoder) -> None:
    asked = encoder.encode("why do payments retry", soon())
    near = encoder.encode("payments retry after a failed call", soon())
    far = encoder.encode("the cat sleeps on a warm roof", soon())
    assert float(asked @ near) > float(asked @ far) + 0.2


@pytest.mark.parametrize("name", TEXTS)
def test_passages_cover_the_text_in_order_and_overlap(encoder: Encoder, name: str) -> None:
    text = TEXTS[name]
    spans = encoder.split(text, soon())
    assert spans
    assert spans[0].start == 0
    assert spans[-1].stop == len(text)
    for span in spans:
        assert 0 <= span.start <= span.stop <= len(text)
    for before, after in itertools.pairwise(spans):
        assert before.start < after.start <= before.stop < after.stop


def test_a_long_text_has_several_passages_and_a_short_one_has_one(encoder: Encoder) -> None:
    assert len(encoder.split(TEXTS["one word"], soon())) == 1
    assert len(encoder.split(TEXTS["long"], soon())) > 3


def test_the_end_of_a_long_text_is_near_its_last_passage_alone(encoder: Encoder) -> None:
    text = TEXTS["long"]
    spans = encoder.split(text, soon())
    asked = encoder.encode("The zebra crosses at noon.", soon())
    scores = [float(asked @ encoder.encode(text[span.start : span.stop], soon())) for span in spans]
    assert int(np.argmax(scores)) == len(spans) - 1


def test_an_empty_text_has_a_passage_and_a_vector(encoder: Encoder) -> None:
    (span,) = encoder.split("", soon())
    assert (span.start, span.stop) == (0, 0)
    assert np.isfinite(encoder.encode("", soon())).all()


def test_threads_get_the_vectors_that_one_would(encoder: Encoder) -> None:
    texts = list(TEXTS.values())[:5]
    expected = [encoder.encode(text, soon()) for text in texts]
    found: dict[int, list[Vector]] = {}

    def work(number: int) -> None:
        found[number] = [encoder.encode(text, soon()) for text in texts]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 4
    for vectors in found.values():
        for one, other in zip(vectors, expected, strict=True):
            assert np.array_equal(one, other)


def test_a_deadline_that_is_over_stops_it(encoder: Encoder) -> None:
    encoder.encode("warm", soon())
    cancelled = soon()
    cancelled.cancel()
    for deadline in (Deadline(0), cancelled):
        for late in (encoder.encode, encoder.encode_question, lambda text, until: encoder.encode_all([text], until)):
            with pytest.raises(AgoraError):
                late("late", deadline)
        with pytest.raises(AgoraError):
            encoder.split("late " * 1000, deadline)


def test_warming_up_returns_at_once_and_leads_to_ready(maker: Maker) -> None:
    encoder = maker()
    encoder.warm_up()
    encoder.warm_up()
    encoder.encode("x", soon())
    assert encoder.state == "ready"


def test_details_are_plain_data(encoder: Encoder) -> None:
    details = json.loads(json.dumps(encoder.details()))
    assert details["state"] == encoder.state
