"""The form of a summary: read from the text before, whoever wrote it, and written.

Messages 1 to 18:
Decisions:
- We will use SQLite for the journal. (#3, Anna)
Open:
- Need to test the backup on Windows. (#12, user)
Facts:
- … the store listens on port 5433. (#9, assistant)
Files:
- src/store.py (#3, #9)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from agora.llm.extractive_pieces import Section, Source
from agora.model.message import Role, Summary

CUT: Final = "…"
HEADS: Final[dict[Section, str]] = {"decisions": "Decisions:", "open": "Open:", "facts": "Facts:"}
FILES: Final = "Files:"

_READ = 20_000
"""Characters of the summary before that are read; one by these rules has a tenth of it."""

_NAME = 24
"""Characters of a speaker's name that are written."""

_RANGE = re.compile(r"\s*Messages \d+ to \d+:\s*")
_HEADING = re.compile(r"\W*(decisions|open|facts|files)\W*", re.IGNORECASE)
_QUOTE = re.compile(r"(?P<text>.+) \(#(?P<seq>\d{1,12}), (?P<who>[^()#]{1,80})\)\s*")
_FILE = re.compile(r"-\s+(?P<name>\S+) \((?P<seqs>#\d{1,12}(?:, (?:#\d{1,12}|…))*)\)\s*")
_NUMBER = re.compile(r"#(\d+)")
_BULLET = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_UNNAMABLE = re.compile(r"[\s()#\x00-\x1f]+")
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "tool"}


@dataclass(slots=True)
class Before:
    """The lines of an older summary: what may be quoted again, and the files with the messages that name them."""

    sources: list[Source] = field(default_factory=list)
    files: dict[str, list[int]] = field(default_factory=dict)


def read(summary: Summary, roles: Mapping[str, Role]) -> Before:
    """The lines of a summary; `roles` of those that lines name as speakers, as far as they are known.

    One that an agent or a model wrote gives its sentences, as of no message.
    """
    found = Before()
    heading: str = ""
    for line in summary.text[:_READ].splitlines():
        if not line.strip() or _RANGE.fullmatch(line):
            continue
        if head := _HEADING.fullmatch(line):
            heading = head[1].casefold()
        elif heading == "files" and (listed := _FILE.fullmatch(line)):
            found.files[listed["name"]] = [int(n) for n in _NUMBER.findall(listed["seqs"])]
        else:
            section = next((name for name in HEADS if name == heading), None)
            found.sources.append(_source(line, section, summary, roles))
    return found


def _source(line: str, section: Section | None, summary: Summary, roles: Mapping[str, Role]) -> Source:
    bullet = _BULLET.match(line)
    text = line[bullet.end() if bullet else 0 :].strip()
    quoted = _QUOTE.fullmatch(text)
    seq, who = None, None
    # A number outside of what the summary covers is somebody's text and names no message.
    if quoted and summary.first <= int(quoted["seq"]) <= summary.last:
        text, seq, who = quoted["text"], int(quoted["seq"]), quoted["who"]
    bare = text.strip(CUT).strip() if seq is not None else text
    return Source(
        text=bare or text,
        seq=seq,
        who=who,
        role=_ROLES.get(who or "") or roles.get(who or "", "user"),
        at=None,
        section=section,
        cut_left=bool(bare) and seq is not None and text.startswith(CUT),
        cut_right=bool(bare) and seq is not None and text.endswith(CUT),
    )


def label(speaker: str | None, role: Role) -> str:
    """How a line names who spoke: one that does not break the form.

    Tools and systems by their role alone: a name would make them look like people when the line is read back.
    """
    if role in {"tool", "system"}:
        return role
    return _UNNAMABLE.sub(" ", speaker or "").strip()[:_NAME].strip() or role


def range_line(first: int, last: int) -> str:
    """The first line."""
    return f"Messages {first} to {last}:"


def quote_line(text: str, source: Source, *, cut_left: bool, cut_right: bool) -> str:
    """One quote."""
    shown = f"{CUT if cut_left else ''}{text}{CUT if cut_right else ''}"
    return f"- {shown}" if source.seq is None else f"- {shown} (#{source.seq}, {source.who})"


def file_line(name: str, seqs: Sequence[int]) -> str:
    """One file: the first message that names it, and the last two."""
    shown = [f"#{seq}" for seq in (seqs if len(seqs) <= 3 else (seqs[0], *seqs[-2:]))]
    if len(seqs) > 3:
        shown.insert(1, CUT)
    return f"- {name} ({', '.join(shown)})"


def written(first: str, sections: dict[Section, list[str]], files: Sequence[str]) -> str:
    """The whole text; sections in their fixed order, empty ones left out."""
    return "\n".join(_lines(first, sections, files))


def _lines(first: str, sections: dict[Section, list[str]], files: Sequence[str]) -> Iterator[str]:
    yield first
    for section, head in HEADS.items():
        if lines := sections.get(section):
            yield head
            yield from lines
    if files:
        yield FILES
        yield from files
