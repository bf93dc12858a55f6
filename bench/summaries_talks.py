"""Conversations with the messages that answer somebody's question, read from a folder given on the command line."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agora.model.message import Message, Role
from bench.datasets import lines


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation; `evidence`: the answers to the questions that a message, by its number, is evidence of."""

    name: str
    messages: tuple[Message, ...]
    evidence: dict[int, list[str]]
    speakers: frozenset[str] = field(default_factory=frozenset)


def load(folder: Path, name: str) -> list[Talk]:
    """The conversations of a set, in the order of their names."""
    return {"locomo": _locomo, "beam": _beam, "cri": _cri}[name](folder)


def _message(seq: int, role: Role, speaker: str | None, text: str, at: datetime) -> Message:
    return Message(f"m_{seq}", seq, "bench", "bench", seq, role, speaker, text, at, at, {}, "bench", "user")


def _talk(name: str, messages: Sequence[Message], evidence: dict[int, list[str]]) -> Talk:
    speakers = frozenset(message.speaker.casefold() for message in messages if message.speaker)
    return Talk(name, tuple(messages), evidence, speakers)


def _locomo(folder: Path) -> list[Talk]:
    turns: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for turn in lines(folder / "locomo" / "turns.jsonl.gz"):
        if turn["text"].strip():
            turns[turn["conv"]].append(turn)
    asked: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for query in lines(folder / "locomo" / "queries.jsonl"):
        if query["category"] == "adversarial" or query.get("audit", "WRONG_CITATION") != "WRONG_CITATION":
            continue
        for turn in query.get("evidence_clean") or query["evidence"]:
            asked[query["conv"], turn].append(str(query["answer"]))
    talks = []
    for conv, said in sorted(turns.items()):
        messages, evidence = [], {}
        for seq, turn in enumerate(said, 1):
            at = datetime.strptime(turn["date"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC) + timedelta(seconds=seq)
            messages.append(_message(seq, "user", turn["speaker"], turn["text"], at))
            if (conv, turn["id"]) in asked:
                evidence[seq] = asked[conv, turn["id"]]
        talks.append(_talk(conv, messages, evidence))
    return talks


def _beam(folder: Path) -> list[Talk]:
    turns: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for turn in lines(folder / "beam_100k" / "turns.jsonl.gz"):
        turns[turn["conv"]].append(turn)
    asked: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for query in lines(folder / "beam_100k" / "queries.jsonl"):
        for turn in query["gold_turns"]:
            asked[query["conv"], turn].append(str(query["answer"]))
    talks = []
    for conv, said in sorted(turns.items(), key=lambda item: int(item[0])):
        at = datetime(2024, 1, 1, tzinfo=UTC)
        messages, evidence = [], {}
        for seq, turn in enumerate(said, 1):
            if turn["date"]:
                at = datetime.strptime(turn["date"], "%B-%d-%Y").replace(tzinfo=UTC)
            messages.append(_message(seq, turn["role"], None, turn["text"], at + timedelta(seconds=seq)))
            if (conv, turn["id"]) in asked:
                evidence[seq] = asked[conv, turn["id"]]
        talks.append(_talk(f"beam-{conv}", messages, evidence))
    return talks


def _cri(folder: Path) -> list[Talk]:
    """The messages of each month as a conversation; evidence is what the set calls a change, a conflict or a signal."""
    truth = json.loads((folder / "cri_persona1" / "ground_truth.json").read_text(encoding="utf-8"))
    asked: defaultdict[int, list[str]] = defaultdict(list)
    for change in truth["changes"]:
        for number in change["key_messages"]:
            asked[number].append(change["new_value"])
    for conflict in truth["conflicts"]:
        for number in conflict["introduced_at_messages"]:
            asked[number].append(conflict["correct_resolution"])
    signals = {row["text"]: row["target_fact"] for row in truth["signal_examples"]}
    months: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in lines(folder / "cri_persona1" / "messages.jsonl.gz"):
        months[row["timestamp"][:7]].append(row)
        if row["content"] in signals:
            asked[row["message_id"]].append(signals[row["content"]])
    talks = []
    for month, said in sorted(months.items()):
        messages, evidence = [], {}
        for seq, row in enumerate(said, 1):
            at = datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC)
            messages.append(_message(seq, row["role"], None, row["content"], at))
            if row["message_id"] in asked:
                evidence[seq] = asked[row["message_id"]]
        talks.append(_talk(f"cri-{month}", messages, evidence))
    return talks
