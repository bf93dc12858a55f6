"""Whether a conversation's context holds what a question is about: every message of LoCoMo, appended and asked for.

Each conversation is appended through the service, its messages under new ids, with speakers and dates; the role goes by
the speaker. Then the context of each question is asked for, and looked through for the turns that answer it. Beside it
stands a plain buffer: as many of the last messages as the same budget holds, written in the same way. Half of the
conversations, `tuned`, are those that weights were chosen by; the others were looked at with the weights fixed.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agora.app.clock import SystemClock
from agora.embedding.onnx import OnnxEncoder, packaged_model
from agora.memory.conversations.service import ConversationMemory
from agora.model.deadline import Deadline
from agora.model.message import Message, MessageDraft, Role, Summary
from agora.ports.summarizer import Folded
from agora.stores.sqlite.store import SqliteStore
from agora.testing import SilentLog
from agora.text.tokens import cost
from bench import machine
from bench.datasets import lines
from bench.fit_score import CALLER

LONG = Deadline(1e6)
BUDGETS = (1_000, 4_000)
TUNED = frozenset({0, 2, 4, 6, 8})
"""Conversations that weights were chosen by, in the order of their names."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, and the numbers of the messages that answer it."""

    session: str
    text: str
    gold: frozenset[int]
    category: str
    tuned: bool


class Beginnings:
    """Stands in for a summary where none is measured: the first words of the newest messages."""

    def fold(
        self, before: Summary | None, messages: Sequence[Message], words: int, tokens: int, deadline: Deadline
    ) -> Folded:
        """As `Summarizer.fold`."""
        del before, deadline, tokens
        return Folded(" ".join(" ".join(each.content for each in messages).split()[:words]), "extractive")


def main() -> None:
    """Append, ask, look, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--tuned-only", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agora-conversations-", ignore_cleanup_errors=True) as folder:
        report = measure(options.data, Path(folder), tuned_only=options.tuned_only)
    print(json.dumps(report["rates"], indent=1))
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(report, indent=2), encoding="utf-8")


def measure(data: Path, folder: Path, *, tuned_only: bool) -> dict[str, Any]:
    """Rates by budget, system and half of the conversations, with the times."""
    encoder = OnnxEncoder(packaged_model("all-MiniLM-L6-v2-int8"))
    encoder.encode("warm", LONG)
    store = SqliteStore(folder / "agora.db", encoder.fingerprint, SystemClock())
    conversations = store.conversations()
    summarizer = _summarizer()
    memory = ConversationMemory(lambda _: conversations, encoder, SystemClock(), SilentLog(), summarizer, lambda *_: ())
    began = time.monotonic()
    asked, messages = _append(memory, data, tuned_only=tuned_only)
    appended = time.monotonic() - began
    rows: dict[tuple[int, str, str], list[int]] = defaultdict(list)
    seconds: list[float] = []
    for question in asked:
        half = "tuned" if question.tuned else "others"
        for budget in BUDGETS:
            began = time.perf_counter()
            found = memory.context("bench", question.session, budget, question.text, CALLER, LONG)
            seconds.append(time.perf_counter() - began)
            given = {each.seq for each in (*found.relevant, *found.last) if each.seq not in found.cut}
            assert found.tokens <= budget
            plain = _last(messages[question.session], budget)
            for system, shown in (("agora", given), ("last", plain)):
                hit = int(not question.gold.isdisjoint(shown))
                for part in (half, "all", f"category {question.category}"):
                    rows[budget, system, part].append(hit)
    store.close()
    rates: dict[str, Any] = {}
    for (budget, system, part), hits in sorted(rows.items()):
        rate = {"rate": round(sum(hits) / len(hits), 4), "questions": len(hits)}
        rates.setdefault(str(budget), {}).setdefault(system, {})[part] = rate
    seconds.sort()
    return {
        "machine": machine.describe(),
        "summarizer": type(summarizer).__name__,
        "messages": sum(map(len, messages.values())),
        "append_seconds_each": round(appended / sum(map(len, messages.values())), 5),
        "context_seconds_median": round(seconds[len(seconds) // 2], 5),
        "context_seconds_99": round(seconds[int(len(seconds) * 0.99)], 5),
        "rates": rates,
    }


def _summarizer() -> Any:
    if importlib.util.find_spec("agora.llm.extractive") is None:
        return Beginnings()
    return importlib.import_module("agora.llm.extractive").ExtractiveSummarizer()


def _append(
    memory: ConversationMemory, data: Path, *, tuned_only: bool
) -> tuple[list[Asked], dict[str, list[MessageDraft]]]:
    turns: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for turn in lines(data / "locomo" / "turns.jsonl.gz"):
        turns[turn["conv"]].append(turn)
    tuned = {name for place, name in enumerate(sorted(turns)) if place in TUNED}
    numbers: dict[tuple[str, str], int] = {}
    messages: dict[str, list[MessageDraft]] = defaultdict(list)
    for place, name in enumerate(sorted(turns)):
        if tuned_only and name not in tuned:
            continue
        first = turns[name][0]["speaker"]
        for n, turn in enumerate(each for each in turns[name] if each["text"].strip()):
            at = _date(turn["date"]) + timedelta(seconds=n)
            role: Role = "user" if turn["speaker"] == first else "assistant"
            draft = MessageDraft("bench", f"conversation {place}", role, turn["text"], turn["speaker"], at)
            numbers[name, turn["id"]] = memory.append(draft, CALLER, LONG).seq
            messages[draft.session].append(draft)
    asked = []
    for query in lines(data / "locomo" / "queries.jsonl"):
        if (
            query["category"] == "adversarial"
            or query.get("audit", {}).get("type", "WRONG_CITATION") != "WRONG_CITATION"
        ):
            continue
        evidence = query.get("evidence_clean") or query["evidence"]
        gold = frozenset(numbers[query["conv"], turn] for turn in evidence if (query["conv"], turn) in numbers)
        if gold:
            session = f"conversation {sorted(turns).index(query['conv'])}"
            asked.append(Asked(session, query["question"], gold, query["category"], query["conv"] in tuned))
    return asked, messages


def _date(text: str) -> datetime:
    clock, _, day = text.partition(" on ")
    return datetime.strptime(f"{' '.join(clock.split()).upper()} {day}", "%I:%M %p %d %B, %Y").replace(tzinfo=UTC)


def _last(messages: Sequence[MessageDraft], budget: int) -> set[int]:
    """Numbers of the last messages that fit, as the JSON of an array of them."""
    shown: set[int] = set()
    rows: list[dict[str, str]] = []
    for number in range(len(messages), 0, -1):
        rows.insert(0, {"role": messages[number - 1].role, "content": messages[number - 1].content})
        if cost(json.dumps(rows, ensure_ascii=False)) > budget:
            break
        shown.add(number)
    return shown


if __name__ == "__main__":
    main()
