from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.conftest import Desk, MakeDesk
from tests.unit.exchange.ferry import send, take, versions_of

from agora.testing import ManualClock

Step = tuple[Any, ...]

_TEXTS = st.sampled_from(
    [
        "the port is 5432",
        "porta",
        "порт",
        "端口 🎉",
        "e\u0301",
        "é",
        "a\u2028b\x85\x1b[31m",
        "  two  ",
        'quote " \\ line\n',
    ]
    + ["x"] * 2
) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20).filter(
    str.strip
)
_TAGS = st.lists(st.sampled_from(["a", "b", "größe"]), max_size=2, unique=True).map(tuple)
_METADATA = st.dictionaries(
    st.sampled_from(["m", "n"]), st.sampled_from([1, 1.5, "x", None, True, [1, {"y": "z"}], 10**20]), max_size=2
)
_SAVE = st.tuples(
    st.just("save"),
    _TEXTS,
    st.sampled_from(["ann", "bob"]),
    st.sampled_from([None, None, "k1", "k2"]),
    st.sampled_from(["p", "q"]),
    st.fixed_dictionaries(
        {},
        optional={
            "tags": _TAGS,
            "metadata": _METADATA,
            "title": st.sampled_from(["Title", "Titolo"]),
            "confidence": st.sampled_from([0.0, 0.3, 1.0]),
            "lives": st.integers(1, 30),
            "kind": st.sampled_from(["note", "decision"]),
        },
    ),
)
_STEPS = st.lists(
    st.one_of(
        _SAVE,
        _SAVE,
        _SAVE,
        st.tuples(st.sampled_from(["forget", "restore"]), st.integers(0, 30)),
        st.tuples(st.just("wait"), st.integers(1, 20)),
    ),
    max_size=25,
)
_SAVES = st.lists(st.one_of(_SAVE, _SAVE, st.tuples(st.just("wait"), st.integers(1, 20))), max_size=15)
_EXAMPLES = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def save(text: str, key: str | None = None, **fields: Any) -> Step:
    """A save in the namespace `p`."""
    return ("save", text, "ann", key, "p", fields)


def live(desk: Desk, steps: list[Step]) -> None:
    """Let a store live through `steps`."""
    for step in steps:
        if step[0] == "save":
            _, text, agent, key, namespace, fields = step
            desk.save(text, agent, namespace, session=f"s-{agent}", key=key, **fields)
        elif step[0] == "wait":
            desk.clock.advance(seconds=step[1])
        else:
            rows = desk.sql("SELECT i.public_id, n.name FROM items i JOIN namespaces n ON n.id = i.namespace_id")
            if rows:
                public_id, namespace = rows[step[1] % len(rows)]
                act: Callable[..., object] = desk.forget if step[0] == "forget" else desk.restore
                act(public_id, namespace=namespace)


def in_folder(check: Callable[[Path, ManualClock], None]) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        check(Path(folder), ManualClock())


@given(_STEPS, st.booleans(), st.integers(0, 40))
@_EXAMPLES
def test_an_export_imported_and_exported_again_is_the_same_byte_for_byte(
    steps: list[Step], vectors: bool, later: int
) -> None:
    def check(folder: Path, clock: ManualClock) -> None:
        with closing(Desk(folder / "a", clock=clock)) as one, closing(Desk(folder / "b", clock=clock)) as two:
            live(one, steps)
            first = send(one, folder / "one.jsonl", vectors=vectors)
            clock.advance(seconds=later)
            report = take(two, folder / "one.jsonl")
            assert report.whole
            assert set(report.counts) <= {"created"}
            second = send(two, folder / "two.jsonl.gz", vectors=vectors)
            assert versions_of(second) == versions_of(first)
            ends = [json.loads(lines[-1]) for lines in (first, second)]
            assert ends[0]["versions_sha256"] == ends[1]["versions_sha256"]
            assert two.problems() == []

    in_folder(check)


@pytest.mark.parametrize(
    "steps",
    [
        # A version that was restored after another one took its place, while its text was saved without a key.
        [save("A", "k"), ("forget", 0), save("A"), save("B", "k"), ("restore", 0)],
        # The same without any key at first.
        [save("A"), ("forget", 0), save("A"), save("A", "k"), save("B", "k"), ("restore", 0)],
        # A version that replaces the one before it and a row of its text without a key.
        [save("B", "k"), save("A"), save("A", "k")],
        # The same text comes and goes under one key.
        [save("A", "k"), save("B", "k"), save("A", "k"), save("B", "k")],
        # A row that the clock has ended, and the same text once more.
        [save("A", lives=5), ("wait", 5), save("A"), save("C", lives=5), ("wait", 9)],
    ],
)
def test_histories_with_a_twist_come_through_whole(make_desk: MakeDesk, tmp_path: Path, steps: list[Step]) -> None:
    one, two = make_desk(tmp_path / "a"), make_desk(tmp_path / "b")
    live(one, steps)
    first = send(one, tmp_path / "one.jsonl")
    assert take(two, tmp_path / "one.jsonl").counts == {"created": len(versions_of(first))}
    assert versions_of(send(two, tmp_path / "two.jsonl")) == versions_of(first)
    assert two.problems() == []


@given(st.lists(st.tuples(_STEPS, _STEPS), min_size=1, max_size=2))
@example([([save("porta", "k1")], [save(text, "k1") for text in ("the port is 5432", "porta", "the port is 5432")])])
@example([([save("B", "k")], [save("C", "k")]), ([], [save("B", "k")]), ([], [save("A", "k")])])
@example([([save("A", "k")], []), ([("forget", 0)], []), ([save("A"), save("C", "k")], [])])
@_EXAMPLES
def test_two_stores_that_import_each_other_stay_whole_and_a_second_time_changes_nothing(
    rounds: list[tuple[list[Step], list[Step]]],
) -> None:
    def check(folder: Path, clock: ManualClock) -> None:
        with closing(Desk(folder / "a", clock=clock)) as one, closing(Desk(folder / "b", clock=clock)) as two:
            for mine, yours in rounds:
                live(one, mine)
                live(two, yours)
                send(one, folder / "one.jsonl")
                send(two, folder / "two.jsonl")
                take_in(one, folder, folder / "two.jsonl")
                take_in(two, folder, folder / "one.jsonl")

    in_folder(check)


_MOVES = st.tuples(st.just("send"), st.sampled_from([1, 2]), st.sampled_from(["all", "all", "live", "since"]))


@given(st.lists(st.tuples(st.integers(0, 2), st.one_of(_STEPS.map(lambda steps: steps[:4]), _MOVES)), max_size=12))
@example(
    [
        *[(0, [save("A", "k")]), (0, ("send", 2, "all")), (0, [save("B", "k"), save("C", "k")])],
        *[(0, ("send", 1, "live")), (0, ("send", 1, "all")), (1, ("send", 1, "all"))],
    ]
)
@_EXAMPLES
def test_three_stores_that_send_each_other_all_or_parts_stay_whole_and_a_second_time_changes_nothing(
    acts: list[tuple[int, Any]],
) -> None:
    def check(folder: Path, clock: ManualClock) -> None:
        with contextlib.ExitStack() as open_desks:
            desks = [open_desks.enter_context(closing(Desk(folder / name, clock=clock))) for name in "abc"]
            since = clock.now()
            for number, act in acts:
                if isinstance(act, list):
                    live(desks[number], act)
                    continue
                _, step, what = act
                options: dict[str, dict[str, Any]] = {"live": {"live_only": True}, "since": {"since": since}}
                since = clock.now()
                send(desks[number], folder / "x.jsonl", **options.get(what, {}))
                target = desks[(number + step) % 3]
                before = heads(target)
                take_in(target, folder, folder / "x.jsonl")
                assert heads(target) >= before

    in_folder(check)


def heads(desk: Desk) -> set[tuple[str, str]]:
    """Namespace and key of everything that has a current version."""
    found = "SELECT n.name, i.key FROM items i JOIN namespaces n ON n.id = i.namespace_id WHERE i.key IS NOT NULL"
    return set(desk.sql(f"{found} AND i.superseded_by IS NULL"))


def take_in(desk: Desk, folder: Path, file: Path) -> None:
    """Import `file` three times: as a dry run, in earnest, and once more."""
    before = send(desk, folder / "before.jsonl")
    foreseen = take(desk, file, dry_run=True)
    assert send(desk, folder / "after.jsonl") == before
    done = take(desk, file)
    assert foreseen.as_data() | {"dry_run": False} == done.as_data()
    assert desk.problems() == []
    here = {json.loads(line)["id"] for line in versions_of(send(desk, folder / "now.jsonl"))}
    assert here >= {json.loads(line)["id"] for line in versions_of(before)}
    sequence = desk.sql("SELECT max(sequence) FROM journal")
    again = take(desk, file)
    assert set(again.counts) <= {"duplicate", "conflict"}
    assert again.counts["conflict"] == done.counts["conflict"]
    assert desk.sql("SELECT max(sequence) FROM journal") == sequence


@given(_STEPS)
@_EXAMPLES
def test_the_live_notes_first_and_all_the_rest_later_make_the_same_store(steps: list[Step]) -> None:
    def check(folder: Path, clock: ManualClock) -> None:
        with closing(Desk(folder / "a", clock=clock)) as one, closing(Desk(folder / "b", clock=clock)) as two:
            live(one, steps)
            whole = send(one, folder / "one.jsonl")
            send(one, folder / "live.jsonl", live_only=True)
            assert take(two, folder / "live.jsonl").whole
            assert take(two, folder / "one.jsonl").counts["conflict"] == 0
            assert two.problems() == []
            assert sorted(versions_of(send(two, folder / "two.jsonl"))) == sorted(versions_of(whole))

    in_folder(check)


@given(_STEPS, _SAVES)
@_EXAMPLES
def test_what_changed_since_brings_an_older_copy_up_to_date(before: list[Step], after: list[Step]) -> None:
    def check(folder: Path, clock: ManualClock) -> None:
        with closing(Desk(folder / "a", clock=clock)) as one, closing(Desk(folder / "b", clock=clock)) as two:
            live(one, before)
            send(one, folder / "old.jsonl")
            take(two, folder / "old.jsonl")
            clock.advance(seconds=1)
            since = clock.now()
            live(one, after)
            send(one, folder / "new.jsonl", since=since)
            report = take(two, folder / "new.jsonl")
            assert report.counts["conflict"] == 0
            assert two.problems() == []
            here = {json.loads(line)["id"] for line in versions_of(send(two, folder / "two.jsonl"))}
            assert here == {json.loads(line)["id"] for line in versions_of(send(one, folder / "all.jsonl"))}

    in_folder(check)
