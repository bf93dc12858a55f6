"""`agora compact`, and the index's files around the real program."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.integration.processes import RunAgora, Serve


def test_compacting_says_what_it_did_in_words_and_as_json(run_agora: RunAgora, home: Path) -> None:
    assert run_agora("compact").stdout == "nothing to compact\n"
    assert json.loads(run_agora("compact", "--json").stdout) == {"compacted": False}
    assert run_agora("save", "The gateway answers 502 when the queue is full", "--tag", "queue").returncode == 0
    assert run_agora("save", "Deploys run at noon").returncode == 0
    done = run_agora("compact")
    assert done.returncode == 0
    assert re.fullmatch(r"generation 1: 2 passages, 0 dropped, \d+\.\d seconds\n", done.stdout)
    assert len(list((home / "index").glob("*.seg"))) == 1
    assert run_agora("forget", "-t", "queue", "--yes").returncode == 0
    again = json.loads(run_agora("compact", "--json").stdout)
    assert again.pop("seconds") >= 0
    assert again == {"compacted": True, "generation": 2, "passages": 1, "dropped": 1}
    assert "noon" in run_agora("query", "deploys", "-k", "1").stdout


def test_a_server_goes_over_to_files_that_a_command_wrote_and_shows_them_in_its_status(
    run_agora: RunAgora, serve: Serve
) -> None:
    server = serve()
    server.call("agora_save", content="The cache is cleared at midnight")
    assert server.call("agora_status")["index"]["generation"] == 0
    assert json.loads(run_agora("compact", "--json").stdout)["generation"] == 1
    assert len(server.call("agora_query", query="when is the cache cleared")["results"]) == 1
    index = server.call("agora_status")["index"]
    assert (index["kind"], index["generation"], index["problem"]) == ("sqlite", 1, None)


def test_a_folder_of_files_that_was_deleted_costs_nothing_but_a_word(run_agora: RunAgora, home: Path) -> None:
    run_agora("save", "The gateway answers 502 when the queue is full")
    run_agora("compact")
    for path in (home / "index").iterdir():
        path.unlink()
    assert "502" in run_agora("query", "gateway errors", "-k", "1").stdout
    (problem,) = json.loads(run_agora("status", "--json").stdout)["problems"]
    assert "missing" in problem["message"]
    assert json.loads(run_agora("compact", "--json").stdout)["generation"] == 2
    assert json.loads(run_agora("status", "--json").stdout)["problems"] == []
