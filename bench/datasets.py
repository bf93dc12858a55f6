"""Evaluation sets as (documents, questions), read from a folder given on the command line.

Documents get random ids and a shuffled order; whoever retrieves sees a question's text and nothing else.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Document:
    """One text to save; `id` is for scoring alone."""

    id: str
    text: str
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """One question and the ids of the documents that answer it."""

    text: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class Set:
    """A named set; a rank is counted against its gold ids."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]


def load(folder: Path, name: str, seed: int = 0, most: int | None = None) -> Set:
    """One set by name, documents and questions shuffled by `seed`, at most `most` questions."""
    kind, _, variant = name.partition(":")
    documents, questions = _LOADERS[kind](folder, variant)
    rng = random.Random(seed)
    rng.shuffle(documents)
    rng.shuffle(questions)
    return Set(name, tuple(documents), tuple(questions[:most]))


def _agentnotes(folder: Path, language: str) -> tuple[list[Document], list[Question]]:
    data = json.loads((folder / "agentnotes.json").read_text(encoding="utf-8"))
    documents = [Document(note["id"], note["text"]) for note in data["notes"]]
    return documents, [
        Question(query["text"], frozenset(query["gold"])) for query in data["queries"] if query["lang"] == language
    ]


def _xquad(folder: Path, variant: str) -> tuple[list[Document], list[Question]]:
    asked, written = variant.split("-")
    asked = "it_from_squad_it" if asked == "it" else asked
    return _pair(folder / "xquad" / f"corpus.{written}.jsonl", folder / "xquad" / f"queries.{asked}.jsonl")


def _scifact(folder: Path, variant: str) -> tuple[list[Document], list[Question]]:
    del variant
    return _pair(folder / "scifact" / "corpus.jsonl.gz", folder / "scifact" / "queries_test.jsonl")


def _squad_it(folder: Path, variant: str) -> tuple[list[Document], list[Question]]:
    del variant
    return _pair(folder / "squad_it" / "corpus.jsonl.gz", folder / "squad_it" / "queries.jsonl.gz")


def _cosqa(folder: Path, variant: str) -> tuple[list[Document], list[Question]]:
    return _pair(folder / "cosqa" / "corpus.jsonl.gz", folder / "cosqa" / f"queries_{variant}.jsonl")


def _tldr(folder: Path, language: str) -> tuple[list[Document], list[Question]]:
    return _pair(folder / "tldr_xling" / "corpus.en.jsonl.gz", folder / "tldr_xling" / f"queries.{language}.jsonl")


def _locomo(folder: Path, variant: str) -> tuple[list[Document], list[Question]]:
    """Turns of all conversations in one store; clean questions with evidence, no adversarial ones."""
    del variant
    documents = [
        Document(f"{turn['conv']}/{turn['id']}", f"{turn['speaker']}: {turn['text']}")
        for turn in lines(folder / "locomo" / "turns.jsonl.gz")
        if turn["text"].strip()
    ]
    known = {document.id for document in documents}
    questions = []
    for query in lines(folder / "locomo" / "queries.jsonl"):
        if query["category"] == "adversarial" or query.get("audit", "WRONG_CITATION") != "WRONG_CITATION":
            continue
        evidence = query.get("evidence_clean") or query["evidence"]
        gold = frozenset(f"{query['conv']}/{turn}" for turn in evidence) & known
        if gold:
            questions.append(Question(query["question"], gold))
    return documents, questions


def _pair(corpus: Path, queries: Path) -> tuple[list[Document], list[Question]]:
    documents = [Document(row["id"], row["text"], row.get("title") or None) for row in lines(corpus)]
    known = {document.id for document in documents}
    questions = [
        Question(row["text"], frozenset(key for key, worth in row["rel"].items() if worth) & known)
        for row in lines(queries)
    ]
    return [each for each in documents if each.text.strip()], [each for each in questions if each.gold]


def lines(path: Path) -> Iterator[dict[str, Any]]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    yield from (json.loads(line) for line in text.decode("utf-8").split("\n") if line.strip())


_LOADERS = {
    "agentnotes": _agentnotes,
    "xquad": _xquad,
    "scifact": _scifact,
    "squad_it": _squad_it,
    "cosqa": _cosqa,
    "tldr": _tldr,
    "locomo": _locomo,
}
