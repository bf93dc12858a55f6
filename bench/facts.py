"""What becomes of facts that later facts overrule: does a question find the newest above those that it replaced?

Two sets, read from a folder. `memagentbench_factcons`: raw sentences in their order go to `remember_from` with the
rules of the deterministic extractor, then each question about one fact is a query. `cri_persona1`: what a person says
over a year goes there message by message, and the topics of its changes and conflicts are the queries. Beside it the
same texts as notes, and the upper bound: sentences that the data say to be about one thing are remembered under one
key, so that nothing is left to extraction.

`stale above new`: of the questions with something stale, the share in which the best of it stands above the newest, or
is found while that is not. `newest first`: the share whose first hit is the newest; where it says so, of the questions
whose newest sentence gave a fact.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agora.embedding.onnx import OnnxEncoder, packaged_model
from agora.llm.patterns.extractor import PatternExtractor
from agora.memory.facts import FactMemory
from agora.memory.notes import Notes
from agora.model.deadline import Deadline
from agora.model.fact import FactDraft
from agora.model.note import Draft
from agora.model.query import Filter, Query
from agora.stores.sqlite.store import SqliteStore
from agora.testing import ManualClock, SilentLog
from bench import machine
from bench.fit_score import CALLER

LONG = Deadline(1e6)
DEPTH = 20
PLACE = "bench"
START = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and the numbers of the texts that answer it and of those that used to."""

    text: str
    new: frozenset[int]
    stale: frozenset[int]


@dataclass(frozen=True, slots=True)
class Given:
    """A fact as the data have it: the text it comes from, and what it is of."""

    number: int
    subject: str
    key: str
    value: str
    quote: str | None = None


@dataclass(slots=True)
class Memory:
    """A fresh store with its services, and which texts each saved thing stands for."""

    store: SqliteStore
    notes: Notes
    facts: FactMemory
    clock: ManualClock
    texts: dict[str, set[int]] = field(default_factory=dict)

    def came_from(self, public_id: str, number: int) -> None:
        """Something was saved, or said again, by this text."""
        self.texts.setdefault(public_id, set()).add(number)

    def asked(self, question: str) -> list[set[int]]:
        """The numbers of the texts that each hit stands for, best first."""
        query = Query(question, Filter((PLACE,)), top_k=DEPTH, max_tokens=10_000_000)
        hits = self.notes.query(query, CALLER, LONG).hits
        # A near-copy that was folded stands where the hit stands that it was folded into.
        return [self.texts.get(each, set()) for hit in hits for each in (hit.note.id, *hit.similar)]


def main() -> None:
    """Fill, ask, count, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder in which the sets are")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", nargs="+", default=["6k", "32k"])
    options = parser.parse_args()
    report: dict[str, Any] = {"machine": machine.describe(), "top_k": DEPTH, "consolidation": {}, "persona": {}}
    for size in options.sizes:
        report["consolidation"][size] = shown(size, consolidation(options.data / "memagentbench_factcons", size))
    report["persona"] = shown("persona", persona(options.data / "cri_persona1"))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2), encoding="utf-8")


def shown(name: str, figures: dict[str, Any]) -> dict[str, Any]:
    """The figures, which are printed as well."""
    print(name)
    for what, row in figures.items():
        print(f"  {what}: {json.dumps(row)}", flush=True)
    return figures


def consolidation(folder: Path, size: str) -> dict[str, Any]:
    """Sentences, one fact each, of which some overrule others."""
    rows = [row for row in lines(folder / "facts.jsonl.gz") if row["size"] == size]
    sentences = {int(row["n"]): str(row["text"]) for row in sorted(rows, key=lambda row: int(row["n"]))}
    single = [row for row in lines(folder / "queries.jsonl") if row["size"] == size and "gold_fact" in row]
    # Where the data's own answer is overruled later, there is no telling what is right.
    single = [row for row in single if not row["later_same_prefix"]]
    questions = [
        Question(row["question"], frozenset({row["gold_fact"]}), frozenset(row["stale_facts"])) for row in single
    ]
    about = {number: place for place, each in enumerate(questions) for number in each.new | each.stale}
    given = [
        Given(number, f"question {about[number]}" if number in about else f"text {number}", "says", text, text)
        for number, text in sentences.items()
    ]
    return compared(sentences, {}, questions) | {"facts with given keys": bound(given, {}, questions)}


def persona(folder: Path) -> dict[str, Any]:
    """What one person says in a year, and what of it changed."""
    said = [row for row in lines(folder / "messages.jsonl.gz") if row["role"] == "user"]
    texts = {int(row["message_id"]): str(row["content"]) for row in said}
    times = {int(row["message_id"]): datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC) for row in said}
    truth = json.loads((folder / "ground_truth.json").read_text(encoding="utf-8"))
    last: dict[str, Question] = {}
    for change in truth["changes"]:
        before = last.get(change["fact"])
        stale = frozenset() if before is None else before.new | before.stale
        last[change["fact"]] = Question(change["query_topic"], frozenset(change["key_messages"]), stale)
    conflicts = [
        Question(each["topic"], frozenset(each["introduced_at_messages"][-1:]), frozenset(told))
        for each in truth["conflicts"]
        if (told := each["introduced_at_messages"][:-1])
    ]
    figures = compared(texts, times, [*last.values(), *conflicts])
    given = [Given(number, f"text {number}", "says", text, text) for number, text in texts.items()]
    changed: dict[str, Question] = {}
    for place, change in enumerate(truth["changes"], start=1):
        # What was before the first change was so from the beginning.
        before = changed.get(change["fact"]) or Question("", frozenset({-place}), frozenset())
        if -place in before.new:
            given.insert(0, Given(-place, "user", change["fact"], change["old_value"]))
        message = change["changed_around_msg"]
        changed[change["fact"]] = Question(change["query_topic"], frozenset({message}), before.new | before.stale)
        after = next(at for at, each in enumerate(given) if each.number >= message)
        given.insert(after, Given(message, "user", change["fact"], change["new_value"]))
    for each in truth["conflicts"]:
        for message, value in zip(each["introduced_at_messages"], each["conflicting_statements"], strict=False):
            after = next(at for at, other in enumerate(given) if other.number >= message)
            given.insert(after, Given(message, "user", each["topic"], value))
    figures["facts with given keys"] = bound(given, times, [*changed.values(), *conflicts])
    return figures


def compared(texts: Mapping[int, str], times: Mapping[int, datetime], questions: list[Question]) -> dict[str, Any]:
    """The same questions to facts that were extracted, to notes, and to facts whose keys were given."""
    found: dict[str, Any] = {"texts": len(texts), "questions": len(questions)}
    with fresh() as memory:
        began, gave, kept = time.process_time(), set[int](), 0
        for number, text in told(texts, times, memory.clock):
            gathered = memory.facts.remember_from(text, PLACE, CALLER, LONG)
            kept += len(gathered.remembered)
            for _, each in gathered.remembered:
                gave.add(number)
                memory.came_from(each.id, number)
        cost = (time.process_time() - began) * 1000 / len(texts)
        extracted = [each for each in questions if each.new & gave]
        found["extracted"] = {
            "texts that gave facts": round(len(gave) / len(texts), 4),
            "facts": kept,
            "newest gave a fact": len(extracted),
            "newest and all that is stale gave facts": sum(bool(q.stale) and q.stale <= gave for q in extracted),
            "cpu_ms_per_text": round(cost, 2),
        }
        found["facts"] = score(memory, questions)
        found["facts, of questions whose newest gave a fact"] = score(memory, extracted)
    with fresh() as memory:
        for number, text in told(texts, times, memory.clock):
            memory.came_from(memory.notes.save(Draft(text, PLACE), CALLER, LONG).id, number)
        found["notes"] = score(memory, questions)
    return found


def bound(given: list[Given], times: Mapping[int, datetime], questions: list[Question]) -> dict[str, Any]:
    """What is found where nothing is left to extraction."""
    with fresh() as memory:
        for each in given:
            passed(memory.clock, times.get(each.number))
            draft = FactDraft(PLACE, each.subject, each.key, each.value, quote=each.quote)
            memory.came_from(memory.facts.remember(draft, CALLER, LONG).id, each.number)
        return score(memory, questions)


def told(texts: Mapping[int, str], times: Mapping[int, datetime], clock: ManualClock) -> Iterator[tuple[int, str]]:
    """Each text at its time."""
    for number, text in texts.items():
        passed(clock, times.get(number))
        yield number, text


def passed(clock: ManualClock, at: datetime | None) -> None:
    """It is that time now, or a minute later where none is known."""
    clock.advance(seconds=60 if at is None else max(0.0, (at - clock.now()).total_seconds()))


def score(memory: Memory, questions: list[Question]) -> dict[str, Any]:
    """Shares of the questions, and how many there are."""
    above = stale = first = missing = neither = 0
    for question in questions:
        hits = memory.asked(question.text)
        new = best(hits, question.new)
        old = best((hit - question.new for hit in hits), question.stale)
        first += new == 0
        missing += new is None
        if question.stale:
            stale += 1
            above += old is not None and (new is None or old < new)
            neither += old is None and new is None
    return {
        "questions": len(questions),
        "with something stale": stale,
        "stale above new": share(above, stale),
        "newest first": share(first, len(questions)),
        f"newest not among {DEPTH}": share(missing, len(questions)),
        "neither found": share(neither, stale),
    }


def best(hits: Iterable[set[int]], wanted: frozenset[int]) -> int | None:
    """The place of the first hit that stands for one of these texts."""
    return next((place for place, hit in enumerate(hits) if hit & wanted), None)


def share(part: int, whole: int) -> float | None:
    """None of nothing."""
    return round(part / whole, 4) if whole else None


def lines(file: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines, packed or not."""
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return [json.loads(line) for line in text.decode().splitlines()]


@contextmanager
def fresh() -> Iterator[Memory]:
    """An empty memory, which goes away."""
    encoder, clock = OnnxEncoder(packaged_model("all-MiniLM-L6-v2-int8")), ManualClock(START)
    with tempfile.TemporaryDirectory(prefix="agora-facts-", ignore_cleanup_errors=True) as folder:
        store = SqliteStore(Path(folder) / "agora.db", encoder.fingerprint, clock)
        notes = Notes(store, encoder, clock, SilentLog(), model_seconds=1e6)
        facts = FactMemory(store.facts(), encoder, clock, SilentLog(), PatternExtractor(), model_seconds=1e6)
        yield Memory(store, notes, facts, clock)
        store.close()


if __name__ == "__main__":
    main()
