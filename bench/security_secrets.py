"""How many known secrets are replaced, how many innocent texts are not left alone, and what looking costs.

Recall on the examples of gitleaks and of detect-secrets, which are labelled; false positives on turns of LoCoMo
conversations and on CoSQA's functions, which hold no secrets. The examples look like live credentials and belong to no
repository: `--data` names the folder that has them. An example of a secret counts as found if anything in it was
replaced; one of no secret counts as flagged likewise, and is only reported: many are secrets to another rule.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from agora.redaction.redactor import Redactor
from bench import datasets, machine

CREDENTIALS = "recall detect-secrets, credentials"
GOALS = {
    "recall gitleaks": (">=", 0.95),
    "recall detect-secrets": (">=", 0.95),
    CREDENTIALS: (">=", 0.95),
    "false positives LoCoMo": ("<=", 0.001),
    "false positives CoSQA": ("<=", 0.01),
    "ms per 2,000 characters of prose": ("<=", 2.0),
    "ms per 2,000 characters of code": ("<=", 2.0),
}
SIZE = 2_000
SHOWN = 12


def main() -> None:
    """Read, count, time, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--misses", action="store_true", help="print the examples that were not found")
    options = parser.parse_args()
    security = options.data / "security"
    if not security.is_dir():
        sys.exit(
            f"bench.security_secrets: there is no folder {security}: the labelled examples are not part of this project"
            " because scanners take them for live credentials. Name the folder that has `security` with --data."
        )
    redactor = Redactor()
    prose = [each.text for each in datasets.load(options.data, "locomo").documents]
    code = [each.text for each in datasets.load(options.data, "cosqa:test").documents]
    figures: dict[str, float] = {}
    details: dict[str, Any] = {}
    for name, file, kind in (
        ("gitleaks", "gitleaks_examples.jsonl.gz", "rule"),
        ("detect-secrets", "detect_secrets_examples.jsonl.gz", "plugin"),
    ):
        rows = list(datasets.lines(security / file))
        secret = [row for row in rows if row["secret"]]
        missed = [row for row in secret if not redactor.text(row["text"])[1]]
        flagged = [row for row in rows if not row["secret"] and redactor.text(row["text"])[1]]
        figures[f"recall {name}"] = 1 - len(missed) / len(secret)
        if name == "detect-secrets":
            # Public addresses of machines are no credentials, and a template without its value has none.
            real = [row for row in secret if row[kind] != "ip_public" and "{secret}" not in row["text"]]
            figures[CREDENTIALS] = 1 - sum(row in missed for row in real) / len(real)
        details[name] = {
            "secrets": len(secret),
            "missed": dict(Counter(row[kind] for row in missed).most_common()),
            "labelled as none": len(rows) - len(secret),
            "of these replaced": dict(Counter(row[kind] for row in flagged).most_common()),
        }
        if options.misses:
            for row in missed:
                print(name, row[kind], repr(row["text"][:300]))
    for name, texts in (("LoCoMo", prose), ("CoSQA", code)):
        found = [(text, counts) for text in texts if (counts := redactor.text(text)[1])]
        figures[f"false positives {name}"] = len(found) / len(texts)
        details[name] = {
            "texts": len(texts),
            "flagged": len(found),
            "kinds": dict(sum((c for _, c in found), Counter())),
        }
        if options.misses:
            for text, counts in found[:SHOWN]:
                print(name, dict(counts), [text[each.start - 30 : each.end + 5] for each in redactor.find(text)])
    figures["ms per 2,000 characters of prose"] = _cost(redactor, prose)
    figures["ms per 2,000 characters of code"] = _cost(redactor, code)
    report = {"machine": machine.describe(), "figures": figures, "goals": GOALS, "details": details}
    for name, value in figures.items():
        sign, goal = GOALS[name]
        reached = value >= goal if sign == ">=" else value <= goal
        print(f"{name:34} {value:.4f}  goal {sign} {goal:g}  {'reached' if reached else 'MISSED'}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def _cost(redactor: Redactor, texts: Iterable[str]) -> float:
    """Median processor time for one text of 2,000 characters, in milliseconds."""
    spent = []
    for text in _cut("\n".join(texts)):
        began = time.process_time_ns()
        redactor.text(text)
        spent.append((time.process_time_ns() - began) / 1e6)
    return round(statistics.median(spent), 4)


def _cut(text: str, most: int = 300) -> Iterator[str]:
    for start in range(0, min(len(text), most * SIZE), SIZE):
        yield text[start : start + SIZE]


if __name__ == "__main__":
    main()
