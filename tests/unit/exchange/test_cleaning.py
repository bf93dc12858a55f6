"""What an import reads has no secrets once it is in the store."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import Desk
from tests.integration.made_up_secrets import Maker
from tests.unit.exchange.ferry import LIMIT, foreign, notes_of, take, version, write

from agora.config.project import canonical_namespace
from agora.exchange import sources
from agora.exchange.cleaning import clean_version
from agora.exchange.importing import Importer, Wanted
from agora.exchange.report import Report
from agora.model.deadline import Deadline
from agora.model.profile import Span
from agora.protocol.redacting import Guard, Mode
from agora.testing import SilentLog

TOKEN = Maker(3).token().text
LONG = 120.0


def guarded(desk: Desk, file: Path, mode: Mode) -> Report:
    with sources.opened(str(file)) as [source]:
        guard = Guard(mode)
        importer = Importer(
            desk.store.transfer(), desk.encoder, desk.clock, SilentLog(), content_bytes=LIMIT, guard=guard
        )
        return importer.run(source, lambda _: desk.caller(), Wanted(), Deadline(LONG))


def test_a_version_of_an_export_loses_its_secrets_and_with_them_its_vectors(desk: Desk, tmp_path: Path) -> None:
    vector = desk.encoder.encode("whatever it was", Deadline(LONG))
    spans = ((Span(0, 5), vector),)
    texts = [f"use {TOKEN} here", "nothing to hide"]
    file = write(
        tmp_path / "x.jsonl",
        [version(n, text, passages=spans) for n, text in enumerate(texts)],
        digest=desk.encoder.fingerprint.digest(),
    )
    report = take(desk, file)
    assert report.counts == {"created": 2}
    assert sum(report.redacted.values()) == 1
    assert sum(report.as_data()["redacted"].values()) == 1
    assert report.whole
    clean = notes_of(desk)[0]["content"]
    assert clean.startswith("use [REDACTED:")
    kept = [bytes(row[0]) for row in desk.sql("SELECT v.vector FROM vectors v ORDER BY v.passage_id")]
    anew = desk.encoder.encode(clean, Deadline(LONG)).tobytes()
    assert kept == [anew, vector.tobytes()]


def test_everything_of_a_version_is_looked_at(tmp_path: Path) -> None:
    del tmp_path
    plain = version(1, "x", title="t", key="k", metadata={"a": "b"}, session="s", speaker="p", forget_reason="r")
    giver = plain.savers[0]
    places = {
        "content": TOKEN,
        "title": TOKEN,
        "key": TOKEN,
        "metadata": {"deep": [TOKEN]},
        "session": TOKEN,
        "speaker": TOKEN,
        "forget_reason": TOKEN,
    }
    for name, value in places.items():
        clean, replaced = clean_version(replace(plain, **{name: value}), Guard())  # type: ignore[arg-type]
        assert TOKEN not in str(clean), name
        assert sum(replaced.values()) == 1, name
    for name in ("agent", "client", "client_version", "token", "session", "given", "tags"):
        secret = {"given": {"title": TOKEN}, "tags": (TOKEN.casefold(), "ops")}.get(name, TOKEN)
        clean, replaced = clean_version(replace(plain, savers=(replace(giver, **{name: secret}),)), Guard())  # type: ignore[arg-type]
        assert TOKEN.casefold() not in str(clean).casefold(), name
        assert sum(replaced.values()) == 1, name
    assert clean_version(plain, Guard())[0] is plain


@pytest.mark.parametrize("token", [TOKEN, "ghp_" + "aB3dE5" * 6, "glpat-" + "aB3dE5gH_7" * 2])
def test_a_version_whose_namespace_is_a_secret_is_left_out(desk: Desk, tmp_path: Path, token: str) -> None:
    place = canonical_namespace(f"acme/{token}")
    file = write(tmp_path / "x.jsonl", [version(1, "one"), replace(version(2, "two"), namespace=place)])
    report = take(desk, file)
    assert report.counts == {"created": 1, "broken": 1}
    assert report.broken[0]["place"] == "line 3"
    assert place not in str(report.as_data())


@pytest.mark.parametrize("name", ["x.jsonl", "memory.jsonl"])
def test_where_secrets_are_refused_the_other_texts_come_in(desk: Desk, tmp_path: Path, name: str) -> None:
    if name == "x.jsonl":
        file = write(tmp_path / name, [version(1, f"use {TOKEN}"), version(2, "nothing to hide")])
    else:
        entity = {"type": "entity", "name": "Ada", "entityType": "p", "observations": [f"uses {TOKEN}", "speaks"]}
        file = foreign(tmp_path, name, json.dumps(entity) + "\n")
    report = guarded(desk, file, "refuse")
    assert report.counts == {"created": 1, "broken": 1}
    assert not report.whole
    assert "what looks like a secret in content" in report.broken[0]["reason"]
    assert TOKEN not in str(report.as_data())


def test_switched_off_an_import_keeps_what_is_there(desk: Desk, tmp_path: Path) -> None:
    file = write(tmp_path / "x.jsonl", [version(1, f"use {TOKEN}")])
    assert guarded(desk, file, "off").redacted == {}
    assert notes_of(desk)[0]["content"] == f"use {TOKEN}"


def test_a_text_of_another_tool_is_known_again_when_it_is_imported_twice(desk: Desk, tmp_path: Path) -> None:
    file = foreign(tmp_path, "CLAUDE.md", f"# Rules for {TOKEN}\n\nNever use {TOKEN}.\n")
    first = take(desk, file)
    assert (first.counts, sum(first.redacted.values())) == ({"created": 1}, 5)
    assert take(desk, file).counts == {"duplicate": 1}


def test_a_secret_in_a_heading_is_not_cut_before_it_is_looked_for(desk: Desk, tmp_path: Path) -> None:
    for room in range(0, 60, 3):
        heading = "h" * (165 - room) + " " + TOKEN
        take(desk, foreign(tmp_path, f"{room}.md", f"# {heading}\n\nText {room}.\n"))
    assert [note["key"] for note in notes_of(desk) if TOKEN[:10] in note["key"]] == []


def test_the_name_of_a_file_is_looked_at(desk: Desk, tmp_path: Path) -> None:
    report = take(desk, foreign(tmp_path, f"{TOKEN}.md", "# A\n\nText.\n"))
    assert TOKEN not in report.file
    assert TOKEN not in str(notes_of(desk))
    payloads = desk.sql("SELECT * FROM journal_payload")
    assert payloads
    assert TOKEN.encode() not in str(payloads).encode()
