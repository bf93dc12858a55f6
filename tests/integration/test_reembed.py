"""`agora reembed` by real processes with real encoders and a real server of vectors: killed, resumed, beside others."""

from __future__ import annotations

import json
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.embedding_server import Asked, EmbeddingServer, Handler, hang, status, vectors
from tests.integration.moving import (
    CALM,
    LOCAL,
    TINY,
    Busy,
    asked,
    committed,
    encoders,
    found,
    moving,
    saved,
    slowly,
    sound,
    to,
    using,
)
from tests.integration.processes import AGORA, PATIENCE, RunAgora, Serve, environment

from agora.errors import EmbeddingMismatch


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(96) as found:
        yield found


@pytest.mark.slow
def test_agents_go_on_saving_and_asking_until_the_switch_and_nothing_that_was_acknowledged_is_lost(
    server: EmbeddingServer, home: Path, project: Path, serve: Serve, run_agora: RunAgora
) -> None:
    first = {f"early{number} fact{number} of the project": "" for number in range(60)}
    long = "the boat on the river is late and the fish sleeps. " * 120 + "A zebra crosses at noon."
    client = serve()
    for text in (*first, long):
        first[text] = client.call("agora_save", content=text)["id"]
    gone = first["early7 fact7 of the project"]
    client.call("agora_forget", ids=[gone], dry_run=False)
    replaced = client.call("agora_save", content="the port was eighty", key="port")["id"]
    client.call("agora_save", content="the port is now ninety", key="port")
    server.usual = slowly
    with Busy(client) as busy, moving(home, project, *to(server)) as move:
        code, said = move.end()
        assert code == 0, said
        busy.join()
    assert busy.refused == 3
    assert len(busy.acknowledged) > 5
    assert busy.longest < 5
    assert encoders(home) == {"active": f"openai:words@127.0.0.1:{server.port}"}
    sound(home)
    server.usual = vectors
    other = serve(env=using(server))
    for text, public_id in {**first, **busy.acknowledged}.items():
        question = "zebra crosses noon" if text == long else text
        hits = other.call("agora_query", query=question, mode="semantic", top_k=3)["results"]
        assert (public_id in {hit["id"] for hit in hits}) is (public_id != gone), text
    other.call("agora_restore", ids=[gone])
    [hit] = other.call("agora_query", query="early7 fact7", mode="semantic", top_k=1)["results"]
    assert hit["id"] == gone
    assert other.call("agora_get", ids=[replaced])["notes"][0]["content"] == "the port was eighty"
    saves = len(first) + len(busy.acknowledged) + 2
    with closing(sqlite3.connect(home / "agora.db")) as connection:
        # A save that was refused is not there either.
        assert connection.execute("SELECT count(*) FROM items").fetchone() == (saves,)
    # The old server says what to do, and finds words.
    error = client.refused("agora_save", content="too late")
    assert error["code"] == "embedding_mismatch"
    assert (
        f"Set embedding.model to 'openai:words' and embedding.url to its server 127.0.0.1:{server.port}"
        in error["hint"]
    )
    assert client.call("agora_query", query="fact9", mode="lexical")["results"]
    assert client.refused("agora_crossref", query="fact9")["code"] == "embedding_mismatch"
    assert "embedding_mismatch" in [problem["code"] for problem in client.call("agora_status")["problems"]]
    assert run_agora("doctor", env=using(server)).returncode == 0
    refused = run_agora("doctor")
    assert refused.returncode == 1
    assert "moved from the embedding model 'all-MiniLM-L6-v2-int8'" in refused.stdout


@pytest.mark.slow
def test_killed_at_random_points_it_goes_on_and_encodes_nothing_twice(
    server: EmbeddingServer, home: Path, project: Path, run_agora: RunAgora
) -> None:
    chance = random.Random(4)  # noqa: S311 - when to kill is no secret
    texts = [
        f"note{number} " + " ".join(chance.choices(["boat", "river", "late", "fish"], k=6)) for number in range(400)
    ]
    texts += ["many words about boats and rivers. " * 40 + f"ending{number} " * 60 for number in range(4)]
    ids = saved(home, LOCAL, texts)
    server.usual = slowly
    finished: set[str] = set()
    before = 0
    for _ in range(5):
        with moving(home, project, *to(server), env=LOCAL) as move:
            for _ in range(chance.randrange(1, 4)):
                server.arrived.get(timeout=PATIENCE)
            threading.Event().wait(chance.random() * 0.06)
            move.kill()
        while not server.arrived.empty():
            server.arrived.get()
        sound(home)
        again = finished & set(asked(server)[before:])
        assert not again
        finished, before = committed(home), len(asked(server))
        assert run_agora("doctor", env=LOCAL).returncode == 0
        assert found(home, LOCAL, "note7 boat", mode="semantic")
    assert finished
    done = run_agora(*to(server, "--json"), env=LOCAL)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["resumed"]
    assert not finished & set(asked(server)[before:])
    assert report["encoded"] == len(asked(server)) - before
    assert report["passages"] > len(texts)
    sound(home)
    for number in (0, 123, 399):
        assert ids[number] in found(home, using(server), f"note{number}")[0]
    assert ids[402] in found(home, using(server), "ending2")[0]


def test_killed_while_it_deletes_the_old_vectors_it_deletes_the_rest_the_next_time(
    server: EmbeddingServer, home: Path, project: Path, run_agora: RunAgora
) -> None:
    saved(home, LOCAL, [f"note{number} of the boat" for number in range(300)])
    with moving(home, project, *to(server), env=LOCAL) as move:
        move.wait_for("the store is switched")
        move.kill()
    assert encoders(home) == {"active": f"openai:words@127.0.0.1:{server.port}"}
    sound(home)
    assert found(home, using(server), "note42 boat")
    done = run_agora(*to(server))
    assert done.returncode == 0
    assert "has the model openai:words" in done.stdout
    assert "nothing to do" in done.stdout
    with closing(sqlite3.connect(home / "agora.db")) as connection:
        assert connection.execute("SELECT DISTINCT length(vector) FROM vectors").fetchall() == [(4 * 96,)]
    doctor = run_agora("doctor", env=using(server))
    assert doctor.returncode == 0
    assert "left over" not in doctor.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send to another process")
def test_an_interrupt_says_where_it_stopped(server: EmbeddingServer, home: Path, project: Path) -> None:
    saved(home, LOCAL, [f"note{number} of the boat" for number in range(100)])
    server.then(vectors, vectors, hang)
    with moving(home, project, *to(server), env=LOCAL) as move:
        # The dimension, one batch, and the one that nobody answers.
        for _ in range(3):
            server.arrived.get(timeout=PATIENCE)
        move.process.send_signal(signal.SIGINT)
        code, said = move.end()
    assert code == 130
    assert "stopped at 32 of 100 notes; the same command goes on from there" in said
    assert "Traceback" not in said
    assert len(committed(home)) == 32


def test_a_server_that_fails_in_the_middle_is_told_and_the_next_run_goes_on(
    server: EmbeddingServer, home: Path, run_agora: RunAgora
) -> None:
    texts = [f"note{number} of the boat" for number in range(100)]
    saved(home, LOCAL, texts)
    server.then(vectors, vectors, vectors, status(503))
    failed = run_agora(*to(server), env={**LOCAL, **CALM})
    assert failed.returncode == 1
    assert "503" in failed.stderr
    assert "stopped at 64 of 100 notes; the same command goes on from there" in failed.stderr
    doctor = run_agora("doctor", env=LOCAL)
    assert doctor.returncode == 0
    assert f"on its way to openai:words@127.0.0.1:{server.port}, 64 vectors so far" in doctor.stdout
    sound(home)
    done = run_agora(*to(server, "--json"), env=LOCAL)
    assert json.loads(done.stdout)["encoded"] == 36
    assert "goes on where it was stopped" in done.stderr
    # What failed was asked for twice, and nothing else.
    assert sorted(asked(server)) == sorted([*texts, *texts[64:96]])


def test_a_second_reembed_is_refused_while_the_first_one_lives(
    server: EmbeddingServer, home: Path, project: Path, run_agora: RunAgora
) -> None:
    saved(home, LOCAL, [f"note{number} of the boat" for number in range(50)])
    server.then(vectors, hang)
    with moving(home, project, *to(server), env=LOCAL) as move:
        for _ in range(2):
            server.arrived.get(timeout=PATIENCE)
        refused = run_agora(*to(server), env=LOCAL)
        assert refused.returncode == 1
        assert f"a reembed is under way already, in process {move.process.pid}" in refused.stderr
        # Not even to another model, or to the one that is there.
        assert run_agora("reembed", env=LOCAL).returncode == 1
        move.kill()
    assert run_agora(*to(server), env=LOCAL).returncode == 0
    sound(home)


def test_a_third_model_gives_the_half_built_one_up(server: EmbeddingServer, home: Path, run_agora: RunAgora) -> None:
    [kept] = saved(home, LOCAL, ["the river boat is late"])
    saved(home, LOCAL, [f"note{number} of the fish" for number in range(60)])
    server.then(vectors, vectors, status(503))
    assert run_agora(*to(server), env={**LOCAL, **CALM}).returncode == 1
    done = run_agora("reembed", "--model", "all-MiniLM-L6-v2-int8", env=LOCAL)
    assert done.returncode == 0, done.stderr
    assert (
        f"gave up the unfinished move to openai:words@127.0.0.1:{server.port}: its vectors are deleted" in done.stderr
    )
    assert encoders(home) == {"active": "all-MiniLM-L6-v2-int8"}
    assert found(home, {}, "ship delayed on the water")[0][0] == kept
    sound(home)


def test_what_it_says_is_enough_for_a_newcomer(server: EmbeddingServer, home: Path, run_agora: RunAgora) -> None:
    saved(home, {}, ["the river boat is late"])
    done = run_agora(*to(server, "--query-prefix", "ask: ", "--max-tokens", "64"))
    assert done.returncode == 0
    assert f"moved from all-MiniLM-L6-v2-int8 to openai:words@127.0.0.1:{server.port}" in done.stdout
    assert re.search(r"1 passages of 1 notes, every version counted; 1 encoded in \d+\.\d s", done.stdout)
    assert f"write this into {home / 'agora.toml'}" in done.stdout
    assert "2. Start running servers again" in done.stdout
    # What it says to write is a configuration, word for word, and the right one.
    told = re.search(r"^ {4}\[embedding\]$(.*?)\n\n", done.stdout, re.MULTILINE | re.DOTALL)
    assert told is not None
    written = "[embedding]\n" + "\n".join(line.strip() for line in told[1].splitlines())
    assert tomllib.loads(written) == {
        "embedding": {"model": "openai:words", "url": server.url, "query_prefix": "ask: ", "max_tokens": 64}
    }
    (home / "agora.toml").write_text(written, "utf-8")
    shown = run_agora("query", "late boat", "--mode", "semantic", "--namespace", "default").stdout
    assert "the river boat is late" in shown
    assert run_agora("doctor").returncode == 0
    # By now the configuration has it: there is nothing to write.
    again = run_agora("reembed")
    assert (again.returncode, again.stdout) == (
        0,
        f"the store has the model openai:words@127.0.0.1:{server.port} already: nothing to do\n",
    )


def test_with_the_new_model_configured_first_no_option_is_needed(
    server: EmbeddingServer, home: Path, run_agora: RunAgora
) -> None:
    saved(home, LOCAL, ["the river boat is late"])
    (home / "agora.toml").write_text(f"[embedding]\nmodel = 'openai:words'\nurl = '{server.url}'\n", "utf-8")
    refused = run_agora("save", "another")
    assert refused.returncode == 1
    assert "`agora reembed --model openai:words`" in refused.stderr
    done = run_agora("reembed")
    assert done.returncode == 0
    assert "Set the model" not in done.stdout
    assert "Start running servers again" in done.stdout
    assert run_agora("save", "another").returncode == 0


def test_another_model_takes_nothing_over_that_was_said_of_the_configured_one(
    server: EmbeddingServer, home: Path, run_agora: RunAgora
) -> None:
    home.mkdir()
    (home / "agora.toml").write_text(
        f"[embedding]\nmodel = 'openai:words'\nurl = '{server.url}'\nkey = 'sk-secret'\ndocument_prefix = 'doc: '\n",
        "utf-8",
    )
    assert run_agora("save", "the river boat is late").returncode == 0
    with EmbeddingServer(24) as other:
        done = run_agora("reembed", "--model", "openai:others", "--url", other.url)
        assert done.returncode == 0, done.stderr
        assert [text for each in other.requests for text in each.texts] == ["dimension", "the river boat is late"]
        # The key is for the other address.
        assert all("authorization" not in each.headers for each in other.requests)
        keyed = run_agora(
            "reembed", "--model", "openai:third", "--url", other.url, env={"AGORA_EMBEDDING_KEY": "sk-other"}
        )
        assert keyed.returncode == 0, keyed.stderr
        assert other.requests[-1].headers["authorization"] == "Bearer sk-other"
        assert 'key = "${AGORA_EMBEDDING_KEY}"' in keyed.stdout
        assert "sk-other" not in keyed.stdout + keyed.stderr
        # To a model without a server, and with the same server again.
        assert run_agora("reembed", "--model", TINY).returncode == 0
        assert run_agora("reembed", "--model", "openai:words").returncode == 0
    assert server.requests[-1].headers["authorization"] == "Bearer sk-secret"
    assert run_agora("query", "late boat").returncode == 0


def test_a_dry_run_changes_nothing_and_tells_how_much_there_is(
    server: EmbeddingServer, home: Path, run_agora: RunAgora
) -> None:
    saved(home, LOCAL, [*(f"note{number} of the boat" for number in range(99)), "boats and rivers. " * 200])
    bytes_ = (home / "agora.db").read_bytes()
    done = run_agora(*to(server, "--dry-run", "--json"), env=LOCAL)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["dry_run"], told["needed"], told["versions"], told["done"]) == (True, True, 100, 0)
    assert 90 <= told["passages"] <= 200
    assert told["bytes_needed"] == told["passages"] * 96 * 4
    assert len(asked(server)) < 60
    assert (home / "agora.db").read_bytes() == bytes_
    assert encoders(home).keys() == {"active"}
    shown = run_agora(*to(server, "--dry-run"), env=LOCAL)
    assert "100 notes, every version counted: about" in shown.stdout
    assert "nothing has changed" in shown.stderr
    same = run_agora("reembed", "--dry-run", env=LOCAL)
    assert "nothing to do" in same.stdout


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--model", "nobody"), 1, "no model named 'nobody'"),
        (("--model", "what:ever"), 2, "of a kind that is not known"),
        (("--model", "openai:words"), 2, "needs embedding.url"),
        (("--model", "/nowhere/at/all"), 1, "is not there"),
        (("--pooling", "most"), 2, "--pooling"),
        (("--url", "http://127.0.0.1:1/v1"), 2, "needs no server"),
    ],
)
def test_a_model_that_cannot_be_is_refused_before_anything_is_done(
    home: Path, run_agora: RunAgora, options: tuple[str, ...], code: int, words: str
) -> None:
    saved(home, LOCAL, ["the river boat is late"])
    done = run_agora("reembed", *options)
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr
    assert encoders(home).keys() == {"active"}


def test_without_a_store_there_is_nothing_to_move(home: Path, run_agora: RunAgora) -> None:
    done = run_agora("reembed", "--model", TINY)
    assert done.returncode == 1
    assert "there is no store" in done.stderr
    assert not (home / "agora.db").exists()


def test_no_other_process_answers_from_the_cache_of_the_old_model(
    server: EmbeddingServer, home: Path, run_agora: RunAgora
) -> None:
    saved(home, LOCAL, ["the river boat is late"])
    question = "late boat"
    [first] = found(home, LOCAL, question)
    assert found(home, LOCAL, question) == [first]
    assert run_agora(*to(server), env=LOCAL).returncode == 0
    with pytest.raises(EmbeddingMismatch):
        found(home, LOCAL, question)
    assert found(home, using(server), question) == [first]
    assert run_agora("reembed", "--model", TINY, env=using(server)).returncode == 0
    with pytest.raises(EmbeddingMismatch):
        found(home, using(server), question)
    assert found(home, LOCAL, question) == [first]


def test_an_import_in_the_middle_is_embedded_too(
    server: EmbeddingServer, home: Path, project: Path, run_agora: RunAgora, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    ids = saved(other, LOCAL, [f"imported{number} of the fish" for number in range(40)])
    exported = tmp_path / "notes.jsonl"
    done = run_agora("export", str(exported), "--home", str(other), env=LOCAL)
    assert done.returncode == 0, done.stderr
    assert '"vector' not in exported.read_text("utf-8").split("\n", 2)[1]
    saved(home, LOCAL, [f"note{number} of the boat" for number in range(80)])
    server.then(vectors, vectors)
    held = threading.Event()

    def late(handler: Handler, asked: Asked) -> None:
        held.wait(PATIENCE)
        vectors(handler, asked)

    server.then(late)
    with moving(home, project, *to(server), env=LOCAL) as move:
        for _ in range(3):
            server.arrived.get(timeout=PATIENCE)
        imported = run_agora("import", str(exported), env=LOCAL)
        assert imported.returncode == 0, imported.stderr
        held.set()
        assert move.end()[0] == 0
    sound(home)
    for number in (0, 17, 39):
        assert ids[number] in found(home, using(server), f"imported{number}")[0]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_a_terminal_gets_a_bar_and_a_pipe_gets_none(
    server: EmbeddingServer, home: Path, project: Path, run_agora: RunAgora
) -> None:
    import pty  # noqa: PLC0415 - not everywhere

    saved(home, LOCAL, [f"note{number} of the boat" for number in range(100)])
    server.usual = slowly
    master, slave = pty.openpty()
    with closing(open(master, "rb", buffering=0)) as terminal:  # noqa: PTH123 - a descriptor
        process = subprocess.Popen(
            [*AGORA, *to(server)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=slave,
            env=environment(home, {**LOCAL, **CALM, "TERM": "xterm", "COLUMNS": "100"}),
            cwd=project,
        )
        _close(slave)
        shown = b"".join(_until_the_end(terminal.read))
        assert process.wait(PATIENCE) == 0
    assert re.search(rb"\d+/100", shown)
    quiet = run_agora("reembed", "--model", TINY, env=using(server))
    assert quiet.returncode == 0
    assert "/100" not in quiet.stderr


def _close(descriptor: int) -> None:
    import os  # noqa: PLC0415 - as above

    os.close(descriptor)


def _until_the_end(read: Callable[[int], bytes]) -> Iterator[bytes]:
    # The other end of a terminal that is closed is an error on Linux, the end of the file elsewhere.
    while True:
        try:
            part = read(4096)
        except OSError:
            return
        if not part:
            return
        yield part
