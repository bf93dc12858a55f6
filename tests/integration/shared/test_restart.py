"""Which settings the next server has, and what sessions that are open make of it."""

from __future__ import annotations

from pathlib import Path

from tests.integration.processes import RunAgora, Serve, environment
from tests.integration.shared.conftest import SHARED, server_of, servers_of

from agora.daemon import control

OTHER = {"AGORA_CACHE_ENABLED": "false"}


def test_a_restart_keeps_the_settings_of_the_server_whatever_the_shell_has(
    session: Serve, home: Path, run_shared: RunAgora
) -> None:
    one = session(env={"AGORA_LIMITS_QUERY_CHARS": "300"})
    first = server_of(home)["pid"]
    done = run_shared("server", "restart", env=OTHER)
    assert done.returncode == 0
    assert "AGORA_CACHE_ENABLED" in done.stderr
    assert "keeps the settings" in done.stderr
    assert server_of(home)["pid"] != first
    two = session(env={"AGORA_LIMITS_QUERY_CHARS": "300"})
    for each in (one, two):
        assert each.process.poll() is None
        assert each.call("agora_status")["pid"] == server_of(home)["pid"]
        assert each.refused("agora_query", query="x" * 301)["code"] == "payload_too_large"
        assert each.log() == ""
    # A new session with the shell's settings gets what it would have got before.
    three = session(env=OTHER)
    assert "cache.enabled" in three.log()
    assert three.call("agora_status")["server"]["shared"] is False


def test_a_restart_reads_the_file_anew(session: Serve, home: Path, run_shared: RunAgora) -> None:
    one = session()
    (home / "agora.toml").write_text("[limits]\nquery_chars = 300\n", encoding="utf-8")
    done = run_shared("server", "restart")
    assert (done.returncode, done.stderr) == (0, "")
    assert one.refused("agora_query", query="x" * 301)["code"] == "payload_too_large"
    assert one.log() == ""


def test_a_restart_that_could_not_be_started_again_ends_nothing(
    session: Serve, home: Path, run_shared: RunAgora
) -> None:
    one = session()
    first = server_of(home)["pid"]
    (home / "agora.toml").write_text('[embedding]\nkey = "${OF_THE_CLIENT}"\n', encoding="utf-8")
    done = run_shared("server", "restart")
    assert done.returncode == 2
    assert "OF_THE_CLIENT" in done.stderr
    assert one.call("agora_status")["pid"] == first
    assert run_shared("server", "restart", env={"OF_THE_CLIENT": "a secret"}).returncode == 0
    assert one.call("agora_status")["pid"] == server_of(home)["pid"] != first


def test_an_open_session_goes_on_with_a_server_that_has_other_settings_and_says_so_once(
    session: Serve, home: Path
) -> None:
    one = session()
    note = one.call("agora_save", content="Kept.")["id"]
    for _ in range(2):
        control.stop(home)
        control.start(home, {}, environment(home, {**SHARED, **OTHER}))
        assert one.call("agora_get", ids=[note])["unknown"] == []
        assert one.call("agora_status")["pid"] == server_of(home)["pid"]
    assert one.log().count("other settings than this session") == 1
    assert "cache.enabled" in one.log()
    assert "goes on with other settings" in (home / "run" / "server.log").read_text("utf-8")
    # A new one with the settings that the open one has is told as ever.
    two = session()
    assert two.call("agora_status")["server"]["shared"] is False
    assert "cache.enabled" in two.log()
    assert "server of its own" in two.log()
    assert servers_of(home) == [server_of(home)["pid"]]


def test_a_restart_where_no_server_runs_starts_one_with_the_settings_of_the_shell(
    home: Path, session: Serve, run_shared: RunAgora
) -> None:
    assert run_shared("server", "restart", env=OTHER).stderr == ""
    assert session(env=OTHER).call("agora_status")["pid"] == server_of(home)["pid"]
