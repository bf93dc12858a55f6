"""No byte and no number of what a caller may not see comes back by any path.

Rules, rows and calls are made at random. Each call is made twice: on a store that holds everything, and on one that
never held what the caller may not see. The answers must be the same, which no leak survives, be it a text, a count, a
score, or an error in other words.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st
from tests.property.two_worlds import COMMON, NAMESPACES, Visitor, World, allowed, sentinel

from agora.config.access import AccessTable
from agora.model.access import Door, Policy
from agora.model.caller import Origin

EXAMPLES = int(os.environ.get("SCOPE_EXAMPLES", "25"))

namespaces = st.sampled_from(NAMESPACES)
patterns = st.sampled_from(["{own}", "shared", "alpha", "team-*", "team-x", "*a*"])
rights = st.sampled_from(["read", "read", "write", "admin"])
any_tables = st.builds(
    AccessTable,
    namespaces=st.lists(patterns, min_size=1, max_size=3).map(tuple),
    rights=rights,
    tokens=st.sampled_from([(), ("ci",), ("*",), ("other",)]),
    clients=st.sampled_from([(), (), ("codex",)]),
    local=st.booleans(),
    any=st.booleans(),
)
# Else most connections may do nothing at all.
for_all = st.builds(
    AccessTable,
    namespaces=st.lists(patterns | namespaces, min_size=1, max_size=4).map(tuple),
    rights=rights,
    any=st.just(True),  # noqa: FBT003 - a value like the others
)
tables = st.tuples(for_all, any_tables, any_tables).flatmap(
    lambda made: st.sampled_from([list(made[:1]), list(made[:2]), list(made), list(made[1:])])
)
who = st.sampled_from([("http", "ci"), ("http", "ci"), ("local", ""), ("http", "")])
origins: st.SearchStrategy[Origin] = st.sampled_from(["user", "agent", "tool"])
words = st.sampled_from([*COMMON, "gateway port", "zqvault", "zqteamx title", "src/gateway.py", "502"])

saves = st.fixed_dictionaries(
    {
        "tool": st.just("agora_save"),
        "text": st.integers(0, 6),
        "key": st.sampled_from([None, None, "port"]),
        "expires_in": st.sampled_from([None, None, 5]),
        "origin": st.sampled_from([None, None, "user", "tool"]),
    }
)
facts = st.fixed_dictionaries(
    {
        "tool": st.just("remember"),
        "key": st.sampled_from(["port", "host"]),
        "own": st.booleans(),
        "valid_from": st.sampled_from(["2026-01-01", "2026-01-10", "2026-03-01"]),
    }
)
plants = st.tuples(st.just("plant"), namespaces, saves | facts)
changes = st.tuples(
    st.just("change"), st.sampled_from(["agora_forget", "agora_restore", "agora_pin"]), st.integers(0, 30)
)
ids = st.lists(st.integers(0, 30), min_size=1, max_size=4)
maybe = st.none() | namespaces
calls = st.one_of(
    st.fixed_dictionaries(
        {
            "name": st.just("agora_query"),
            "query": words,
            "namespace": maybe,
            "tags": st.sampled_from([None, None, ["common"], ["zqvault-tag"]]),
            "mode": st.sampled_from([None, "lexical", "semantic"]),
            "explain": st.just(True),  # noqa: FBT003 - a value like the others
        }
    ),
    st.fixed_dictionaries({"name": st.just("agora_get"), "ids": ids}),
    st.fixed_dictionaries({"name": st.just("agora_crossref"), "query": words, "namespace": maybe}),
    st.fixed_dictionaries({"name": st.just("agora_crossref"), "id": st.integers(0, 30), "namespace": maybe}),
    st.fixed_dictionaries({"name": st.just("agora_forget"), "ids": ids, "dry_run": st.booleans(), "namespace": maybe}),
    st.fixed_dictionaries(
        {"name": st.just("agora_forget"), "tags": st.just(["common"]), "dry_run": st.booleans(), "namespace": maybe}
    ),
    st.fixed_dictionaries({"name": st.just("agora_restore"), "ids": ids}),
    st.fixed_dictionaries({"name": st.just("agora_pin"), "ids": ids, "pinned": st.booleans()}),
    st.fixed_dictionaries(
        {
            "name": st.just("agora_save"),
            "content": st.sampled_from([*COMMON, "something of my own"]),
            "namespace": maybe,
            "key": st.sampled_from([None, "port"]),
            "origin": st.sampled_from([None, None, "tool"]),
        }
    ),
    st.just({"name": "agora_status"}),
    st.just({"do": "list"}),
    st.sampled_from(
        [
            "agora://status",
            "agora://cache/stats",
            "agora://changes",
            "agora://changes?since=7d",
            "agora://facts",
            "agora://facts/gateway",
            *(f"agora://facts/{sentinel(name)}%20subject" for name in NAMESPACES),
            *(f"agora://namespaces/{name}" for name in NAMESPACES),
            *(f"agora://search?q=gateway&namespace={name}" for name in NAMESPACES),
            *(f"agora://agents/{sentinel(name)}-agent0" for name in NAMESPACES),
            *(f"agora://sessions/{sentinel(name)}-session" for name in NAMESPACES),
        ]
    ).map(lambda uri: {"do": "read", "uri": uri}),
    st.integers(0, 30).map(lambda number: {"do": "read", "uri": "agora://notes/", "note": number}),
    st.sampled_from(
        [
            ("agora://agents/{name}{?cursor}", "name"),
            ("agora://sessions/{id}{?cursor}", "id"),
            ("agora://namespaces/{name}{?cursor}", "name"),
            ("agora://search{?q,namespace}", "namespace"),
            ("agora://notes/{id}", "id"),
            ("agora://facts/{subject}", "subject"),
        ]
    ).map(lambda each: {"do": "complete", "template": each[0], "argument": each[1], "beginning": ""}),
    st.sampled_from(
        [
            ("recall_context", {"topic": COMMON[0]}),
            ("recall_context", {}),
            ("session_handoff", {}),
            ("find_inconsistencies", {"topic": "gateway"}),
        ]
    ).map(lambda each: {"do": "prompt", "name": each[0], "given": each[1]}),
)
fact_calls = st.one_of(
    st.fixed_dictionaries(
        {
            "name": st.just("recall"),
            "subject": st.sampled_from([None, "gateway", "zqvault subject"]),
            "key": st.sampled_from([None, "port"]),
            "namespace": maybe,
            "include_history": st.booleans(),
        }
    ),
    st.fixed_dictionaries(
        {
            "name": st.just("remember"),
            "key": st.just("port"),
            "value": st.sampled_from([8080, 9090]),
            "subject": st.sampled_from(["gateway", "something of mine"]),
            "namespace": maybe,
        }
    ),
)
called, recalled = (each.map(lambda call: ("call", call)) for each in (calls, fact_calls))
# Not `one_of`, which would give each kind of call as much room as all that others do.
steps = st.lists(
    st.sampled_from([plants, plants, changes, called, called, recalled]).flatmap(lambda kind: kind),
    min_size=6,
    max_size=24,
)


class Pair:
    """The world as it is, and the world as the visitor may know it."""

    def __init__(
        self, folder: Path, rules: list[AccessTable], by: tuple[Door, str], client: str, own: str, origin: Origin
    ) -> None:
        self.whole, self.seen = World(folder / "whole"), World(folder / "seen")
        self.worlds = (self.whole, self.seen)
        self.readable = {name for name in NAMESPACES if allowed(rules, *by, client, own, name)}
        policy = Policy(rules)
        self.visitors = [Visitor(world, policy, *by, client, own, origin) for world in self.worlds]
        self.grants = policy.grants(*by, [client], own)
        self.where: dict[int, str] = {}
        """Namespace of what each step saved, in the whole world."""

    def close(self) -> None:
        for world in self.worlds:
            world.close()

    def plant(self, step: int, namespace: str, given: Mapping[str, Any]) -> None:
        self.where[step] = namespace
        for world in self.worlds if namespace in self.readable else (self.whole,):
            world.plant(step, namespace, given)

    def change(self, step: int, tool: str, number: int) -> None:
        if not self.where:
            return
        target = list(self.where)[number % len(self.where)]
        namespace = self.where[target]
        for world in self.worlds if namespace in self.readable else (self.whole,):
            world.plant(step, namespace, {"tool": tool, "ids": [target]})

    def call(self, step: int, given: Mapping[str, Any]) -> tuple[str, str]:
        """What each world answers, with the ids of notes as numbers."""
        raw = []
        for world, visitor in zip(self.worlds, self.visitors, strict=True):
            raw.append(visitor.answer(self._meant(world, given)))
            made = json.loads(raw[-1])
            if given.get("name") not in {"agora_save", "remember"} or made.get("id") in world.ids.values():
                continue
            if "id" in made:
                world.ids[step] = made["id"]
                self.where[step] = made["namespace"]
        self._holds_nothing_hidden(raw[0], json.dumps(self._meant(self.whole, given)))
        return self._plain(raw[0], self.whole), self._plain(raw[1], self.seen)

    def tick(self) -> None:
        """A second passes, so that ids sort by time alike in both worlds."""
        for world in self.worlds:
            world.clock.advance(seconds=1)

    def _meant(self, world: World, given: Mapping[str, Any]) -> dict[str, Any]:
        """A call with ids in place of numbers: of what this world does not hold, those of the other."""

        def named(number: int) -> str:
            there = list(self.where)
            if not there:
                return "n_01M8MKRP2CC69HXHW522H8C8V1"
            step = there[number % len(there)]
            return world.ids.get(step) or self.whole.ids[step]

        call = {"do": "tool"} | {name: value for name, value in given.items() if value is not None}
        if "ids" in call:
            call["ids"] = [named(number) for number in call["ids"]]
        if "id" in call:
            call["id"] = named(call["id"])
        if "note" in call:
            call["uri"] += named(call.pop("note"))
        return call

    def _plain(self, text: str, world: World) -> str:
        numbers = {public_id: step for step, public_id in (self.whole.ids | world.ids).items()}
        # What is in both worlds has an id in each; only this world's own may be in this world's answer.
        # The marks around recalled text are drawn anew for each answer.
        text = re.sub(r"data-[0-9a-f]{16}", "data-MARK", text)
        return re.sub(r"[nf]_[0-9A-Z]{26}", lambda found: f"<{numbers.get(found[0], found[0])}>", text)

    def _holds_nothing_hidden(self, text: str, asked: str) -> None:
        for namespace in set(NAMESPACES) - self.readable:
            # What was asked for by name may be in the words of a refusal.
            assert sentinel(namespace) in asked or sentinel(namespace) not in text
        told = set(re.findall(r"[nf]_[0-9A-Z]{26}", text)) - set(re.findall(r"[nf]_[0-9A-Z]{26}", asked))
        hidden = {self.whole.ids[step] for step, name in self.where.items() if name not in self.readable}
        assert not told & hidden


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables, who, st.sampled_from(["tester", "codex"]), st.sampled_from(["alpha", "vault"]), origins, steps)
def test_a_caller_cannot_tell_the_store_from_one_that_never_held_what_it_may_not_see(
    rules: list[AccessTable],
    by: tuple[Door, str],
    client: str,
    own: str,
    origin: Origin,
    planned: list[tuple[Any, ...]],
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(Pair(Path(folder), rules, by, client, own, origin)) as pair,
    ):
        assert {name for name in NAMESPACES if pair.grants.level(name)} == pair.readable
        event(f"{len(pair.readable)} of {len(NAMESPACES)} namespaces may be read")
        for step, (kind, *given_) in enumerate(planned):
            pair.tick()
            if kind == "plant":
                pair.plant(step, *given_)
            elif kind == "change":
                pair.change(step, *given_)
            else:
                whole, seen = pair.call(step, given_[0])
                note(f"{given_[0]}\n{whole}")
                if not pair.grants.whole:
                    assert whole == seen
                    assert '"sequence"' not in whole
