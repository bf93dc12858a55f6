"""The shared server is killed again and again under busy agents: nothing is lost, and nothing is answered twice.

`SHARED_KILLS=100` by hand; fewer in CI.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import threading
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path

import psutil
import pytest
from tests.integration.processes import Serve, Served
from tests.integration.shared.conftest import eventually

from agora.daemon import control

KILLS = int(os.environ.get("SHARED_KILLS", "5"))
AGENTS = 4
UNKNOWN = "outcome_unknown"


class Agent(threading.Thread):
    """Saves and asks, a few requests at a time, until told to stop; keeps what was acknowledged."""

    def __init__(self, number: int, server: Served, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.number, self.server, self.stop = number, server, stop
        self.acknowledged: list[str] = []
        self.asked = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                self.round()
        except BaseException as problem:  # noqa: BLE001 - told by the test's own thread
            self.failure = problem

    def round(self) -> None:
        texts = [f"agent {self.number} note {self.asked + n}" for n in range(3)]
        saves = [self.server.post_call("agora_save", content=text) for text in texts]
        query = self.server.post_call("agora_query", query=texts[0], top_k=3)
        self.asked += 4
        for request in saves:
            result = self.server.answer(request)["result"]
            error = result["structuredContent"].get("error")
            if error is None:
                self.acknowledged.append(result["structuredContent"]["id"])
            else:
                assert error["code"] == UNKNOWN, error
        found = self.server.answer(query)["result"]
        assert not found.get("isError"), found


def acknowledged_by(agents: list[Agent]) -> int:
    return sum(len(agent.acknowledged) for agent in agents)


def has_acknowledged(agents: list[Agent], enough: int) -> bool:
    return acknowledged_by(agents) >= enough


def are_back(home: Path, agents: list[Agent]) -> bool:
    for agent in agents:
        assert agent.server.process.poll() is None, agent.server.log()
    return bool((control.ask(home, "status") or {}).get("clients") == len(agents))


@pytest.mark.timeout(60 + 15 * KILLS)
def test_each_request_is_answered_once_and_no_acknowledged_save_is_lost(session: Serve, home: Path) -> None:
    stop = threading.Event()
    agents = [Agent(n, session(name=f"agent {n}"), stop) for n in range(AGENTS)]
    for agent in agents:
        agent.start()
    seed = random.SystemRandom().randrange(1 << 30)
    chance = random.Random(seed)  # noqa: S311 - when to kill is no secret
    pids = []
    for _ in range(KILLS):
        enough = acknowledged_by(agents) + 5
        eventually(partial(has_acknowledged, agents, enough), f"work goes on; seed {seed}")
        # At no moment in particular; many kills are spread, since a session gives up on servers that keep ending.
        stop.wait(chance.uniform(0, 0.3) if KILLS <= 5 else chance.uniform(3.5, 5))
        eventually(partial(are_back, home, agents), f"all are back; seed {seed}")
        found = control.ask(home, "status")
        assert found is not None
        pids.append(found["pid"])
        psutil.Process(found["pid"]).kill()
    eventually(partial(are_back, home, agents), f"all are back; seed {seed}")
    stop.set()
    for agent in agents:
        agent.join(60)
        assert agent.failure is None, (seed, agent.failure, agent.server.log())
        assert agent.server.end_input()[0] == 0
    assert len(set(pids)) == KILLS
    for agent in agents:
        ids = Counter(json.loads(line)["id"] for line in agent.server.lines)
        assert [number for number, times in ids.items() if times > 1] == [], seed
        # The handshake has an id too.
        assert len(ids) == agent.asked + 1, seed
    with closing(sqlite3.connect(home / "agora.db")) as store:
        kept = {row[0] for row in store.execute("SELECT public_id FROM items")}
    acknowledged = [each for agent in agents for each in agent.acknowledged]
    assert [each for each in acknowledged if each not in kept] == [], seed
    assert len(acknowledged) > KILLS
