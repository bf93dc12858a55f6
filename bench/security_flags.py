"""What of labelled attacks is flagged as instructions to an agent, beside what of harmless texts is.

Reads the samples from `security` and `locomo` in the folder of the evaluation sets; the report holds
numbers alone. Ends with 1 if more of NotInject is flagged than the goal allows.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from agora.suspicion.flags import reasons
from bench import machine

GOAL = 0.03
"""Most of NotInject that may be flagged: harmless texts full of the words that attacks use."""

LENGTH = 2_000
REPEATS = 50

Row = dict[str, Any]
SETS: dict[str, tuple[str, bool, Callable[[Row], str | None]]] = {
    "bipia": ("security/bipia_attacks.jsonl", True, lambda row: row["text"]),
    "bipia, code": ("security/bipia_attacks.jsonl", True, lambda row: row["text"] if "code" in row["set"] else None),
    "cyberseceval": ("security/cyberseceval_prompt_injection.jsonl", True, lambda row: row["user_input"]),
    "cyberseceval, other languages": (
        "security/cyberseceval_prompt_injection_it_ru_etc.jsonl",
        True,
        lambda row: row["user_input"],
    ),
    "injecguard, attacks": (
        "security/injecguard_valid.jsonl",
        True,
        lambda row: row["text"] if row["attack"] else None,
    ),
    "agent memory guard, attacks": (
        "security/agent_memory_guard_cases.jsonl.gz",
        True,
        lambda row: row["value"] if row["category"] in {"prompt_injection", "memory_persistence"} else None,
    ),
    "notinject": ("security/notinject_benign.jsonl", False, lambda row: row["text"]),
    "injecguard, harmless": (
        "security/injecguard_valid.jsonl",
        False,
        lambda row: None if row["attack"] else row["text"],
    ),
    "agent memory guard, harmless": (
        "security/agent_memory_guard_cases.jsonl.gz",
        False,
        lambda row: None if row["attack"] else row["value"],
    ),
    "locomo turns": ("locomo/turns.jsonl.gz", False, lambda row: row["text"] or None),
}
"""By name: the file, whether its texts are attacks, and the text of a row; None for a row that is not of the set."""


def main() -> int:
    """Flag, count, time, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if missing := sorted({file for file, *_ in SETS.values() if not (options.data / file).is_file()}):
        sys.exit(f"{options.data} lacks {', '.join(missing)}: the samples are not part of the project")
    attacks: dict[str, Row] = {}
    harmless: dict[str, Row] = {}
    texts: list[str] = []
    for name, (file, attack, text_of) in SETS.items():
        found = [text for row in _rows(options.data / file) if (text := text_of(row)) is not None]
        (attacks if attack else harmless)[name] = _counted(found)
        texts += found
    report = {
        "machine": machine.describe(),
        "recall": attacks,
        "false_positives": harmless,
        "goal_notinject": GOAL,
        "cpu_ms_for_2000_characters": _times(texts),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    for name, row in (attacks | harmless).items():
        print(f"{name:32} {row['flagged']:4} of {row['texts']:4}  {row['share']:.3f}")
    print(json.dumps(report["cpu_ms_for_2000_characters"]))
    return int(harmless["notinject"]["share"] > GOAL)


def _counted(texts: Sequence[str]) -> Row:
    found = [reasons(text) for text in texts]
    flagged = sum(map(bool, found))
    why = Counter(reason for each in found for reason in each)
    return {
        "texts": len(texts),
        "flagged": flagged,
        "share": round(flagged / len(texts), 4),
        "reasons": dict(why.most_common()),
    }


def _times(texts: Sequence[str]) -> dict[str, float]:
    """Over notes of one length, cut from all texts."""
    whole = " ".join(texts)
    step = len(whole) // REPEATS
    times = []
    for at in range(0, step * REPEATS, step):
        note = whole[at : at + LENGTH]
        began = time.thread_time()
        reasons(note)
        times.append((time.thread_time() - began) * 1000)
    return {"median": round(statistics.median(times), 3), "max": round(max(times), 3)}


def _rows(path: Path) -> Iterator[Row]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    yield from (json.loads(line) for line in text.decode("utf-8").split("\n") if line.strip())


if __name__ == "__main__":
    sys.exit(main())
