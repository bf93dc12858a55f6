from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path

import numpy as np
import pytest

from agora.embedding.onnx import OnnxEncoder, packaged_model
from agora.errors import DeadlineExceeded
from agora.model.deadline import Deadline

DATA = Path(__file__).resolve().parents[2] / "data" / "embedding"
TEXTS: dict[str, list[str]] = json.loads((DATA / "texts.json").read_text("utf-8"))
ALL = [text for texts in TEXTS.values() for text in texts]

UPSTREAM_TOKENIZER = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"


@pytest.fixture(scope="module")
def exact() -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """The vectors of the fp32 model for all texts, as scripts/build_model.py wrote them."""
    rows = np.load(DATA / "reference.npz")["vectors"].astype(np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def test_every_one_of_two_hundred_texts_is_near_its_fp32_vector(
    encoder: OnnxEncoder, exact: np.ndarray[tuple[int, int], np.dtype[np.float32]]
) -> None:
    assert len(set(ALL)) == len(exact) >= 200
    found = np.stack([encoder.encode(text, Deadline(60)) for text in ALL])
    cosines = (found * exact).sum(1)
    far = {text[:40]: round(float(cosine), 4) for text, cosine in zip(ALL, cosines, strict=True) if cosine < 0.98}
    assert far == {}
    assert np.median(cosines) > 0.995


@pytest.mark.parametrize(
    "text", ["", " ", "a", "word " * 5000, "a\0b", "lone \ud800 surrogate", "👩‍👩‍👧‍👦", "\u0301" * 300]
)
def test_a_vector_is_a_read_only_float32_unit_vector(encoder: OnnxEncoder, text: str) -> None:
    vector = encoder.encode(text, Deadline(60))
    assert vector.shape == (384,)
    assert vector.dtype == np.float32
    assert float(np.linalg.norm(vector.astype(np.float64))) == pytest.approx(1, abs=1e-5)
    assert not vector.flags.writeable


def test_a_text_has_the_same_bytes_alone_and_beside_others(encoder: OnnxEncoder) -> None:
    texts = ALL[:60]
    alone = [encoder.encode(text, Deadline(60)).tobytes() for text in texts]
    together: dict[int, list[bytes]] = {}
    start = threading.Barrier(4)

    def encode(number: int) -> None:
        start.wait(60)
        order = texts[number * 15 :] + texts[: number * 15]
        found = {text: encoder.encode(text, Deadline(60)).tobytes() for text in order}
        together[number] = [found[text] for text in texts]

    threads = [threading.Thread(target=encode, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert [together[number] == alone for number in range(4)] == [True] * 4


def test_what_stands_behind_the_last_piece_read_does_not_count(encoder: OnnxEncoder) -> None:
    read = "the quick brown fox jumps " * 51
    kept = encoder.encode(read, Deadline(60)).tobytes()
    assert encoder.encode(read + "elephants " * 90_000, Deadline(60)).tobytes() == kept
    assert encoder.encode("elephants " + read, Deadline(60)).tobytes() != kept


def test_words_behind_a_long_blank_count(encoder: OnnxEncoder) -> None:
    near = encoder.encode("red apples", Deadline(60))
    assert encoder.encode("red" + " " * 50_000 + "apples", Deadline(60)).tobytes() == near.tobytes()


def test_a_word_that_the_first_look_cuts_is_read_whole(encoder: OnnxEncoder) -> None:
    # 150 letters are one unknown piece, the eight of them before the 2,048th character would be several.
    before, behind = "a " * 250, "q" * 150 + " b" * 50
    near = encoder.encode(before + behind, Deadline(60)).tobytes()
    assert encoder.encode(before + " " * (2040 - len(before)) + behind, Deadline(60)).tobytes() == near


def test_likeness_is_meaning_and_not_words(encoder: OnnxEncoder) -> None:
    question = encoder.encode("why did the rollout break?", Deadline(60))
    answer = encoder.encode("The deployment failed because the disk was full.", Deadline(60))
    other = encoder.encode("The orchestra tuned while the audience found its seats.", Deadline(60))
    assert float(question @ answer) > float(question @ other) + 0.2


def test_a_call_whose_time_is_over_is_not_encoded(encoder: OnnxEncoder) -> None:
    with pytest.raises(DeadlineExceeded):
        encoder.encode("late", Deadline(0))


def test_the_tokenizer_file_is_the_upstream_file() -> None:
    data = (packaged_model() / "tokenizer.json").read_bytes()
    assert hashlib.sha256(data).hexdigest() == UPSTREAM_TOKENIZER


def test_the_model_folder_has_a_card_and_a_licence_and_a_bounded_size() -> None:
    sizes = {path.name: path.stat().st_size for path in packaged_model().iterdir() if path.is_file()}
    assert set(sizes) == {"LICENSE", "MODEL_CARD.md", "manifest.json", "model.onnx", "tokenizer.json"}
    assert sum(sizes.values()) < 25_000_000
    card = (packaged_model() / "MODEL_CARD.md").read_text("utf-8")
    manifest = json.loads((packaged_model() / "manifest.json").read_text("utf-8"))
    hashes = [file["sha256"] for file in manifest["files"].values()] + list(manifest["upstream_sha256"].values())
    assert [digest for digest in hashes if digest not in card] == []
