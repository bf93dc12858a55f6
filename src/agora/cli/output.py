"""How a command prints: plain data with `--json`, a few readable lines without."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from agora.config.load import Row
from agora.errors import AgoraError, ConfigError, InvalidInput
from agora.unseen import in_json, shown

Data = Mapping[str, Any]


def as_json(data: object) -> None:
    """One JSON document on stdout; what drives a terminal or is not seen is a JSON escape in it."""
    print(in_json(json.dumps(data, ensure_ascii=False, indent=2)))


def fail(error: AgoraError, *, json_wanted: bool) -> int:
    """Say what went wrong, on stderr and with `--json` on stdout too; the exit status to use."""
    if json_wanted:
        as_json({"error": error.details()})
    print(f"agora: {printable(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"  {printable(error.hint)}", file=sys.stderr)
    return 2 if isinstance(error, InvalidInput | ConfigError) else 1


def utf8_streams(*streams: object) -> None:
    """Make these streams UTF-8 whatever the console says: notes are in every script (Windows above all)."""
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def replaced(data: Data) -> None:
    """Which secrets were replaced, if any were."""
    if counts := data.get("redacted"):
        said = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        print(f"secrets were replaced by labels: {said}", file=sys.stderr)


def saved(data: Data) -> None:
    """The outcome of a save."""
    extra = f" (the text was there: {data['duplicate_of']})" if "duplicate_of" in data else ""
    extra = f" (version {data['version']}, replaces {data['supersedes']})" if "supersedes" in data else extra
    extra = f" (beside {data['contests']}, of higher origin, which stays)" if "contests" in data else extra
    line(f"{data['status']} {data['id']} in {data['namespace']}{extra}")
    for near in data["related"]:
        line(f"  related {near['score']:.2f} {near['id']} {named(near['agent'])}, {near['origin']}: {near['title']}")
        suspected(near, "    ")


def found(data: Data) -> None:
    """The results of a query."""
    for place, hit in enumerate(data["results"], start=1):
        line(f"{place}. {hit['score']:.2f}  {_head(hit)}")
        suspected(hit)
        print(indented(hit["content"]))
        if "explain" in hit:
            line(f"  {json.dumps(hit['explain'], ensure_ascii=False)}")
    if not data["results"]:
        print("nothing found")
    note = f", {data['omitted']} more" if data["omitted"] else ""
    print(f"searched {', '.join(data['namespaces'])} ({data['namespace_rule']}){note}", file=sys.stderr)


def notes(data: Data) -> None:
    """Whole notes."""
    for each in data["notes"]:
        line(_head(each))
        suspected(each)
        print(indented(each["content"]))
        if each["type"] == "fact":
            _statements(each)
            continue
        for version in each.get("history", ()):
            saver = f"{named(version['agent'])}, {version['origin']}"
            contests = f" contests {version['contests']}" if "contests" in version else ""
            line(f"  version {version['version']}: {version['id']} {saver} {version['created_at']}{contests}")
            suspected(version, "    ")
    for name in ("unknown", "forgotten", "expired", "purged"):
        _listed(name, data[name])


def _statements(each: Data) -> None:
    """How a fact stands, and what else was said of its key."""
    until = f" until {each['until']}" if "until" in each else ""
    line(f"  {each['state']}, from {each['valid_from']}{until}")
    for said in each.get("history", ()):
        value = json.dumps(said["value"], ensure_ascii=False) if "value" in said else "taken back"
        saver = f"{named(said['sources'][0]['agent'])}, {said['sources'][0]['origin']}"
        line(f"  {said['state']} {said['id']} {saver} {said['valid_from']}: {value}")
        suspected(said, "    ")


def forgotten(data: Data) -> None:
    """What was, or would be, forgotten."""
    verb = "would forget" if data["dry_run"] else "forgot"
    print(f"{verb} {data['count']} note{'' if data['count'] == 1 else 's'}")
    for each in data["notes"]:
        line(f"  {each['id']} {named(each['agent'])}, {each['origin']} {each['created_at']}: {each['title']}")
        suspected(each, "    ")
    _listed("unknown", data["unknown"])
    _listed("already forgotten", data["already_forgotten"])
    if data["kept_for_other_savers"]:
        print(f"kept, since other agents saved them too: {data['kept_for_other_savers']}")
    _listed("protected, of higher origin than yours", data["protected"])
    if data["dry_run"] and data["count"]:
        print("nothing has changed yet: add --yes to forget them", file=sys.stderr)


def restored(data: Data) -> None:
    """What happened to each id."""
    for name in ("restored", "restored_as_history", "not_forgotten", "expired", "purged", "unknown"):
        _listed(name.replace("_", " "), data[name])
    for public_id, kept in data["duplicates"].items():
        print(f"{public_id} stays forgotten: {kept} holds the same text")
    _listed("protected, forgotten by a higher origin than yours", data["protected"])


def pinned(data: Data) -> None:
    """What happened to each id."""
    _listed("pinned" if data["pinned"] else "unpinned", data["changed"])
    _listed("already pinned" if data["pinned"] else "not pinned", data["already"])
    _listed("not current", data["not_current"])
    _listed("not of the user's origin: save the text yourself first", data["not_user"])
    _listed("unknown", data["unknown"])


def status(data: Data) -> None:
    """The status, one line a subject."""
    line(f"agora {data['version']}: {data['health']}")
    for problem in data["problems"]:
        line(f"  {problem['code']}: {problem['message']}")
        if problem.get("hint"):
            line(f"    {problem['hint']}")
    rows = {"data": data["home"], "namespace": f"{data['namespace']} ({data['namespace_rule']})"}
    if "notes" in data:
        rows |= _counted(data)
    if (backends := data.get("backends", {})).get("configured"):
        amiss = [f"{', '.join(backends['dead'])} dead"] if "dead" in backends else []
        amiss += [f"{backends['quarantined_tools']} tools quarantined"] if "quarantined_tools" in backends else []
        told = [f"{backends['configured']} configured", f"{backends['tools']} tools known", *amiss]
        rows["backends"] = ", ".join(told)
    if models := data.get("language_models"):
        rows["language"] = "; ".join(f"{each['model']} for {' and '.join(each['used_for'])}" for each in models)
    if "redaction" in data:
        rows["redaction"] = ": ".join(data["redaction"][each] for each in ("mode", "note") if each in data["redaction"])
    for name, value in rows.items():
        line(f"{name:<11} {value}")


def _counted(data: Data) -> dict[str, str]:
    counts, store = data["notes"], data["store"]
    states = ("live", "superseded", "forgotten", "expired", *(("purged",) if counts["purged"] else ()))
    rows = {"notes": ", ".join(f"{counts[state]} {state}" for state in states)}
    if "facts" in data:
        said = [f"{data['facts']['keys']} of {data['facts']['subjects']} subjects"]
        known = data.get("statements", {})
        said += [f"{known[state]} {state}" for state in ("history", "forgotten") if known.get(state)]
        rows["facts"] = ", ".join(said)
    if data.get("conversations"):
        rows["messages"] = f"{data['messages']} in {data['conversations']} conversations"
    for name in ("agents", "namespaces"):
        listed = [f"{each} {count}" for each, count in data[name].items()]
        more = [f"{data[f'more_{name}']} more"] if data[f"more_{name}"] else []
        rows[name] = ", ".join(listed + more) or "none yet"
    size = sum(store["bytes"].values())
    rows["store"] = f"sequence {store['sequence']}, index {data['index']['sequence']}, {size:,} bytes"
    rows["model"] = f"{data['model']['model']}, {data['model']['state']}"
    return rows


def checks(found: Sequence[Data]) -> None:
    """What `agora doctor` found, one line a check."""
    for check in found:
        said = "FAIL" if not check["ok"] else "warn" if check.get("warning") else "ok  "
        line(f"{said}  {check['name']}: {check['message']}")
        if (not check["ok"] or check.get("warning")) and check.get("hint"):
            line(f"        {check['hint']}")


def configuration(rows: Sequence[Row], backends: Sequence[Data], file: str) -> None:
    """Each setting, its value and its source; each backend."""
    width = max(len(row.key) for row in rows)
    for row in rows:
        line(f"{row.key:<{width}}  {'none' if row.value is None else row.value}  ({row.source})")
    line("")
    for each in backends:
        line(f"backend {each['name']}: {each['transport']}, {each.get('command') or each['host']}  ({each['place']})")
    line(f"file: {file}")


def _head(each: Data) -> str:
    tags = f" [{', '.join(each['tags'])}]" if each["tags"] else ""
    title = f" {_quoted(each['title'], ' — ')}" if "title" in each else ""
    saver = f"{named(each['agent'])}, {each['origin']}"
    marks = [f"contests {each['contests']}"] if "contests" in each else []
    marks += [f"contested by {', '.join(each['contested_by'])}"] if "contested_by" in each else []
    marks += ["pinned"] if "pinned_at" in each else []
    marks += [f"from {each['valid_from'][:16]} on"] if each.get("upcoming") else []
    marked = f" {{{'; '.join(marks)}}}" if marks else ""
    return f"{each['id']}{title} — {saver}, {each['created_at'][:10]}, {each['namespace']}{tags}{marked}"


def named(agent: str) -> str:
    """The name of an agent, in quotes if it could be read as more than a name: an agent may call itself `ann, user`."""
    return _quoted(agent, *",:—()")


def _quoted(text: str, *marks: str) -> str:
    return json.dumps(text, ensure_ascii=False) if any(mark in text for mark in marks) or text[:1] == '"' else text


def suspected(each: Data, indent: str = "  ") -> None:
    """A line with the reasons why a row looks like instructions to an agent, if it does."""
    if found := each.get("suspicious"):
        line(f"{indent}looks like instructions: {', '.join(found)}")


def indented(text: str) -> str:
    """A text of any number of lines as it stands under a heading."""
    return "\n".join(f"   {printable(line)}" for line in text.splitlines() or [""])


def _listed(name: str, ids: Sequence[str]) -> None:
    if ids:
        print(f"{name}: {', '.join(ids)}")


def line(text: str) -> None:
    """`text` on one line, with nothing in it that drives a terminal."""
    print(printable(text))


def printable(text: str) -> str:
    """`text` on one line, with nothing that drives a terminal, turns the writing or hides: that is shown."""
    # A line end is none inside a line.
    return shown(text).replace("\n", "\\u000a")
