"""What a summary without a model keeps of what is asked later, beside as many of the first, last and random sentences.

Windows of a conversation are folded message by message, as a session does it: above 12 messages or 3,000 tokens the
older half, at least 6, goes into the summary; what is left at the window's end too. The others get the same words and
tokens in one go, and no references to pay for. Counted are two kinds of terms in the window's messages that are
evidence of some question: `terms`: names (a capital letter inside a sentence, no speaker's), numbers, months and
weekdays, paths; and `answers`: the words of the expected answers that such a message has. A term is kept if it stands
in the summary's quotes; references, headings and the first line do not count. Even conversations are the ones it was
developed on; quoted are odd ones. Intervals are percentiles of 2,000 paired bootstrap samples: of a conversation's
windows, and of the conversations.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agora.llm.extractive import ExtractiveSummarizer
from agora.model.deadline import Deadline
from agora.model.message import Message, Summary
from agora.text.languages import STOP_WORDS
from agora.text.tokens import cost
from bench import machine
from bench.summaries_talks import Talk, load

WORDS, TOKENS = 200, 512
MESSAGES, MESSAGE_TOKENS, LEAST = 12, 3_000, 6
WINDOWS = (24, 96, 0)
"""Messages of a window; 0 for the whole conversation."""
DRAWS = 10
SAMPLES = 2_000
SYSTEMS = ("extractive", "first", "last", "random")
KINDS = ("terms", "answers")

_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+|\n|$)")
_NAME = re.compile(r"(?<=[a-z0-9,;] )[A-Z][\w'-]+")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_DATE = re.compile(
    r"\b(?:January|February|March|April|June|July|August|September|October|November|December|(?:Mon|Tues|Wednes|Thurs|Fri"
    r"|Satur|Sun)day)\b"
)
_PATH = re.compile(r"(?:[\w.-]+/)+[\w.-]+|\b[\w-]+\.(?:py|js|ts|html|css|json|ya?ml|toml|md|sql|txt|csv)\b")
_WORD = re.compile(r"\w+")
_REFERENCE = re.compile(r" \((?:#\d+|…)(?:, [^()]*)?\)$", re.MULTILINE)
_FORM = re.compile(r"^(?:Messages \d+ to \d+:|Decisions:|Open:|Facts:|Files:)$", re.MULTILINE)


def main() -> None:
    """Read, fold, count, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--half", choices=("developed", "held out"), default="held out")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    report: dict[str, Any] = {
        "machine": machine.describe(),
        "seed": options.seed,
        "half": options.half,
        "budget": {"words": WORDS, "tokens": TOKENS},
        "sets": {},
    }
    for name in ("locomo", "beam", "cri"):
        talks = load(options.data, name)[options.half == "held out" :: 2]
        for size in WINDOWS:
            rng = random.Random(options.seed)
            found = [row for talk in talks if (row := measure(talk, size, rng)) is not None]
            report["sets"][f"{name}, {size or 'all'} messages"] = summary = overall(found, rng)
            for kind in KINDS:
                print(name, size or "all", kind, json.dumps(summary[kind]), flush=True)
    report["cost"] = speed(load(options.data, "cri")[0])
    print(json.dumps(report["cost"]))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def measure(talk: Talk, size: int, rng: random.Random) -> dict[str, Any] | None:
    """One conversation: for each kind and system the share kept in each window that has terms of that kind."""
    shares: dict[str, dict[str, list[float]]] = {kind: {system: [] for system in SYSTEMS} for kind in KINDS}
    size = size or len(talk.messages)
    for start in range(0, len(talk.messages), size):
        window = talk.messages[start : start + size]
        wanted = {"terms": _terms(talk, window), "answers": _answers(talk, window)}
        if not any(wanted.values()):
            continue
        texts = {
            "extractive": [folded(window)],
            "first": [_filled(_sentences(window))],
            "last": [_filled(_sentences(window)[::-1])],
            "random": [_filled(rng.sample(own := _sentences(window), len(own))) for _ in range(DRAWS)],
        }
        for kind, terms in wanted.items():
            if terms:
                for system, made in texts.items():
                    shares[kind][system].append(statistics.fmean(_kept(terms, text) for text in made))
    if not shares["terms"]["extractive"]:
        return None
    each = {kind: {name: [round(share, 4) for share in kept] for name, kept in shares[kind].items()} for kind in KINDS}
    row: dict[str, Any] = {"conversation": talk.name, "windows": len(shares["terms"]["extractive"]), "each": each}
    for kind in KINDS:
        row[kind] = {system: round(statistics.fmean(values), 4) for system, values in shares[kind].items() if values}
        for other in SYSTEMS[1:]:
            gains = [a - b for a, b in zip(shares[kind]["extractive"], shares[kind][other], strict=True)]
            if len(gains) > 1:
                row[kind][f"over {other}"] = _interval(gains, rng, statistics.fmean)
    return row


def overall(rows: Sequence[dict[str, Any]], rng: random.Random) -> dict[str, Any]:
    """Medians over conversations, and of the paired differences with their interval; means over all windows too."""
    found: dict[str, Any] = {"conversations": list(rows)}
    for kind in KINDS:
        with_kind = [row[kind] for row in rows if "extractive" in row[kind]]
        found[kind] = {system: round(statistics.median(row[system] for row in with_kind), 3) for system in SYSTEMS}
        for other in SYSTEMS[1:]:
            gains = [row["extractive"] - row[other] for row in with_kind]
            found[kind][f"over {other}"] = _interval(gains, rng, statistics.median)
            pairs = [(row["each"][kind]["extractive"], row["each"][kind][other]) for row in rows]
            gains = [a - b for ours, others in pairs for a, b in zip(ours, others, strict=True)]
            found[kind][f"over {other}, all windows"] = [len(gains), *_interval(gains, rng, statistics.fmean)]
    return found


def _interval(gains: Sequence[float], rng: random.Random, middle: Any) -> list[float]:
    """The middle of paired differences, and the 2.5th and 97.5th percentile of its bootstrap samples."""
    samples = sorted(middle(rng.choices(gains, k=len(gains))) for _ in range(SAMPLES))
    return [round(value, 3) for value in (middle(gains), samples[SAMPLES // 40], samples[-SAMPLES // 40 - 1])]


def folded(window: Sequence[Message]) -> str:
    """The rolling summary of a window."""
    summary: Summary | None = None
    waiting: list[Message] = []
    for n, message in enumerate(window, 1):
        waiting.append(message)
        while len(waiting) > MESSAGES or (
            len(waiting) > LEAST and sum(cost(each.content) for each in waiting) > MESSAGE_TOKENS
        ):
            count = max(LEAST, len(waiting) // 2)
            summary = _fold(summary, waiting[:count])
            waiting = waiting[count:]
        if n == len(window) and waiting:
            summary = _fold(summary, waiting)
    return _REFERENCE.sub("", _FORM.sub("", summary.text)) if summary else ""


def _fold(before: Summary | None, messages: Sequence[Message]) -> Summary:
    made = ExtractiveSummarizer().fold(before, messages, WORDS, TOKENS, Deadline(600))
    assert len(made.text.split()) <= WORDS
    assert cost(made.text) <= TOKENS
    first = before.first if before else messages[0].seq
    version = before.version + 1 if before else 1
    return Summary(made.text, first, messages[-1].seq, version, made.written_by, messages[-1].at)


def _sentences(window: Sequence[Message]) -> list[str]:
    return [found[0].strip() for message in window for found in _SENTENCE.finditer(message.content) if found[0].strip()]


def _filled(sentences: Sequence[str]) -> str:
    """The sentences that fit, in this order, up to the first that does not; of a first one that is too long, a part."""
    taken: list[str] = []
    words = size = 0
    for sentence in sentences:
        words, size = words + len(sentence.split()), size + len(sentence.encode()) + 1
        if words > WORDS or size > TOKENS * 4:
            return "\n".join(taken) or " ".join(sentence.split()[:WORDS])[: TOKENS * 4]
        taken.append(sentence)
    return "\n".join(taken)


def _terms(talk: Talk, window: Sequence[Message]) -> set[str]:
    found = set()
    for message in window:
        if message.seq in talk.evidence:
            for pattern in (_NAME, _NUMBER, _DATE, _PATH):
                found |= {each.casefold().removesuffix("'s") for each in pattern.findall(message.content)}
    # "I'm" has a capital letter and names nobody.
    kept = {term for term in found if (len(term) > 1 or term.isdigit()) and not term.startswith("i'")}
    return kept - talk.speakers - STOP_WORDS


def _answers(talk: Talk, window: Sequence[Message]) -> set[str]:
    found = set()
    for message in window:
        if message.seq in talk.evidence:
            said = {word.casefold() for word in _WORD.findall(message.content)}
            for answer in talk.evidence[message.seq]:
                found |= said & {word.casefold() for word in _WORD.findall(answer) if len(word) > 2 or word.isdigit()}
    return found - STOP_WORDS - talk.speakers


def _kept(terms: set[str], text: str) -> float:
    lower = text.casefold()
    return sum(re.search(rf"(?<!\w){re.escape(term)}(?!\w)", lower) is not None for term in terms) / len(terms)


def speed(talk: Talk) -> dict[str, float]:
    """CPU milliseconds to fold 50 messages of 300 characters, without and with a summary before."""
    whole = " ".join(message.content for message in talk.messages)
    first = talk.messages[0]
    cut = [
        Message(
            f"m_{n}",
            n,
            "bench",
            "bench",
            n,
            "user",
            "Ann",
            whole[300 * n : 300 * n + 300],
            first.at,
            first.at,
            {},
            "b",
            "user",
        )
        for n in range(1, 101)
    ]
    spent: dict[str, list[float]] = {"first": [], "next": []}
    for _ in range(20):
        began = time.process_time()
        before = _fold(None, cut[:50])
        middle = time.process_time()
        _fold(before, cut[50:])
        spent["first"].append(1000 * (middle - began))
        spent["next"].append(1000 * (time.process_time() - middle))
    return {f"{name}, median ms": round(statistics.median(values), 2) for name, values in spent.items()}


if __name__ == "__main__":
    main()
