"""How a command prints: plain data with `--json`, a few readable lines without."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from agora.errors import AgoraError, ConfigError, InvalidInput

Data = Mapping[str, Any]


def as_json(data: object) -> None:
    """One JSON document on stdout."""
    print(json.dumps(data, ensure_ascii=False, indent=2))


def fail(error: AgoraError, *, json_wanted: bool) -> int:
    """Say what went wrong, on stderr and with `--json` on stdout too; the exit status to use."""
    if json_wanted:
        as_json({"error": error.details()})
    print(f"agora: {_printable(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"  {_printable(error.hint)}", file=sys.stderr)
    return 2 if isinstance(error, InvalidInput | ConfigError) else 1


def utf8_streams() -> None:
    """Make stdout and stderr UTF-8 whatever the console says: notes are in every script (Windows above all)."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def saved(data: Data) -> None:
    """The outcome of a save."""
    extra = f" (the text was there: {data['duplicate_of']})" if "duplicate_of" in data else ""
    extra = f" (version {data['version']}, replaces {data['supersedes']})" if "supersedes" in data else extra
    print(f"{data['status']} {data['id']} in {data['namespace']}{extra}")
    for near in data["related"]:
        print(f"  related {near['score']:.2f} {near['id']} {near['agent']}: {_printable(near['title'])}")


def found(data: Data) -> None:
    """The results of a query."""
    for place, hit in enumerate(data["results"], start=1):
        print(f"{place}. {hit['score']:.2f}  {_head(hit)}")
        print(_indented(hit["content"]))
        if "explain" in hit:
            print(f"   {json.dumps(hit['explain'], ensure_ascii=False)}")
    if not data["results"]:
        print("nothing found")
    note = f", {data['omitted']} more" if data["omitted"] else ""
    print(f"searched {', '.join(data['namespaces'])} ({data['namespace_rule']}){note}", file=sys.stderr)


def notes(data: Data) -> None:
    """Whole notes."""
    for each in data["notes"]:
        print(_head(each))
        print(_indented(each["content"]))
        for version in each.get("history", ()):
            print(f"   version {version['version']}: {version['id']} {version['agent']} {version['created_at']}")
    for name in ("unknown", "forgotten", "expired"):
        _listed(name, data[name])


def forgotten(data: Data) -> None:
    """What was, or would be, forgotten."""
    verb = "would forget" if data["dry_run"] else "forgot"
    print(f"{verb} {data['count']} note{'' if data['count'] == 1 else 's'}")
    for each in data["notes"]:
        print(f"  {each['id']} {each['agent']} {each['created_at']}: {_printable(each['title'])}")
    _listed("unknown", data["unknown"])
    _listed("already forgotten", data["already_forgotten"])
    if data["kept_for_other_savers"]:
        print(f"kept, since other agents saved them too: {data['kept_for_other_savers']}")
    if data["dry_run"] and data["count"]:
        print("nothing has changed yet: add --yes to forget them", file=sys.stderr)


def restored(data: Data) -> None:
    """What happened to each id."""
    for name in ("restored", "restored_as_history", "not_forgotten", "expired", "unknown"):
        _listed(name.replace("_", " "), data[name])
    for public_id, kept in data["duplicates"].items():
        print(f"{public_id} stays forgotten: {kept} holds the same text")


def status(data: Data) -> None:
    """The status, one line a subject."""
    print(f"agora {data['version']}: {data['health']}")
    for problem in data["problems"]:
        print(f"  {problem['code']}: {problem['message']}")
    print(f"data      {data['home']}")
    print(f"namespace {data['namespace']} ({data['namespace_rule']})")
    if "notes" in data:
        counts = data["notes"]
        print(f"notes     {counts['live']} live, {counts['superseded']} superseded, {counts['forgotten']} forgotten,"
              f" {counts['expired']} expired")  # fmt: skip
        print(f"agents    {', '.join(f'{name} {count}' for name, count in data['agents'].items()) or 'none yet'}")
        store, index = data["store"], data["index"]
        print(f"store     sequence {store['sequence']}, index {index['sequence']}, {index['passages']} passages,"
              f" {sum(store['bytes'].values()):,} bytes")  # fmt: skip
        print(f"model     {data['model']['model']}, {data['model']['state']}")


def _head(each: Data) -> str:
    tags = f" [{', '.join(each['tags'])}]" if each["tags"] else ""
    title = f" {_printable(each['title'])}" if "title" in each else ""
    return f"{each['id']}{title} — {each['agent']}, {each['created_at'][:10]}, {each['namespace']}{tags}"


def _indented(text: str) -> str:
    return "\n".join(f"   {_printable(line)}" for line in text.splitlines() or [""])


def _listed(name: str, ids: Sequence[str]) -> None:
    if ids:
        print(f"{name}: {', '.join(ids)}")


def _printable(text: str) -> str:
    # A note must not be able to drive the terminal: control characters are shown, not sent.
    return "".join(
        c
        if c == "\t" or c.isprintable() or (c.isspace() and c not in "\r\x0b\x0c\x1c\x1d\x1e\x1f\x85")
        else f"\\x{ord(c):02x}"
        for c in text
    )
