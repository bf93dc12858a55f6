from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

START = """
import logging, sys, warnings
from pathlib import Path
from agora.config.logs import configure_logging, get_logger
from agora.config.settings import LogSettings, Settings
log = get_logger("agora.early")
def start(home, **log):
    configure_logging(Settings(home=Path(home), log=LogSettings(**log)))
"""


def run(code: str, home: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `code` in a process of its own: logging is the state of a whole process."""
    program = f"{START}\nHOME = {str(home)!r}\n{textwrap.dedent(code)}"
    return subprocess.run(
        [sys.executable, "-W", "default", "-c", program],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:backslashreplace", **(env or {})},
    )


def records(home: Path) -> list[dict[str, Any]]:
    """Every record in every log file of `home`."""
    files = sorted((home / "logs").glob("agora-*.log*"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def test_a_record_goes_to_stderr_for_people_and_to_the_file_as_json(tmp_path: Path) -> None:
    done = run("start(HOME); log.info('note saved', id='n_1', took=0.5)", tmp_path)
    assert done.stdout == ""
    assert "note saved" in done.stderr
    assert "id='n_1'" in done.stderr
    assert "\x1b" not in done.stderr
    [record] = records(tmp_path)
    assert record.pop("timestamp").endswith("Z")
    assert record == {
        "event": "note saved",
        "id": "n_1",
        "took": 0.5,
        "level": "info",
        "logger": "agora.early",
    }


def test_words_with_places_for_values_are_filled(tmp_path: Path) -> None:
    done = run("start(HOME); log.warning('%s of %d', 'one', 2)", tmp_path)
    assert "one of 2" in done.stderr
    assert [record["event"] for record in records(tmp_path)] == ["one of 2"]


def test_nothing_goes_to_stdout_before_logging_is_configured(tmp_path: Path) -> None:
    done = run("log.info('early'); log.error('early too'); log.debug('x')", tmp_path)
    assert done.returncode == 0
    assert done.stdout == ""
    assert "early too" in done.stderr
    assert not (tmp_path / "logs").exists()


def test_warnings_and_records_of_other_libraries_go_the_same_way(tmp_path: Path) -> None:
    code = """
    start(HOME)
    warnings.warn("old habit", DeprecationWarning)
    logging.getLogger("some.library").warning("careful with %s", "this")
    logging.getLogger("some.library").info("chatter")
    """
    done = run(code, tmp_path)
    assert done.stdout == ""
    assert "old habit" in done.stderr
    assert "careful with this" in done.stderr
    by_logger = {record["logger"]: record for record in records(tmp_path)}
    assert by_logger["some.library"]["event"] == "careful with this"
    assert by_logger["py.warnings"]["level"] == "warning"
    assert "chatter" not in done.stderr


def test_the_level_decides_what_of_agora_is_written(tmp_path: Path) -> None:
    code = """
    start(HOME, level=LEVEL)
    for level in ("debug", "info", "warning", "error"):
        getattr(log, level)(f"a {level}")
    logging.getLogger("some.library").debug("chatter")
    """
    for level, expected in (("debug", 4), ("info", 3), ("warning", 2), ("error", 1)):
        home = tmp_path / level
        run(f"LEVEL = {level!r}\n{textwrap.dedent(code)}", home)
        assert len(records(home)) == expected


def test_an_exception_is_logged_with_its_traceback_but_without_values(tmp_path: Path) -> None:
    code = """
    start(HOME)
    def save(content):
        try:
            int(content)
        except ValueError:
            raise RuntimeError(f"cannot save {content}")
    try:
        save("a private " + "thought")
    except RuntimeError:
        log.exception("save failed")
    """
    done = run(code, tmp_path)
    [record] = records(tmp_path)
    for text in (done.stderr.rstrip(), record["exception"]):
        assert "in save\n" in text
        assert "\nValueError\n" in text
        assert text.endswith("\nRuntimeError")
        assert "private thought" not in text


def test_what_the_system_says_of_an_error_is_logged(tmp_path: Path) -> None:
    code = """
    import sqlite3
    start(HOME)
    for error in (OSError(28, "No space left on device"), sqlite3.OperationalError("disk I/O error")):
        log.warning("it failed", exc_info=error)
    """
    done = run(code, tmp_path)
    first, second = (record["exception"] for record in records(tmp_path))
    assert first == "OSError: [Errno 28] No space left on device"
    assert second == "sqlite3.OperationalError: disk I/O error"
    assert first in done.stderr


def test_every_exception_of_a_group_and_of_a_circle_is_named_once(tmp_path: Path) -> None:
    code = """
    start(HOME)
    one, other = ValueError("secret one"), KeyError("secret other")
    one.__cause__, other.__cause__ = other, one
    log.warning("it failed", exc_info=ExceptionGroup("secret group", [one, ExceptionGroup("g", [TypeError("x")])]))
    """
    run(code, tmp_path)
    [record] = records(tmp_path)
    names = [line.strip() for line in record["exception"].splitlines() if line.strip() and "1:" not in line]
    assert names[:1] == ["ExceptionGroup"]
    assert [record["exception"].count(name) for name in ("ValueError", "KeyError", "TypeError", "secret")] == [
        1,
        1,
        1,
        0,
    ]


def test_of_a_record_of_another_library_only_the_first_line_is_kept(tmp_path: Path) -> None:
    code = """
    start(HOME)
    logging.getLogger("asyncio").error("Task exception was never retrieved\\nfuture: <ValueError('private thought')>")
    """
    done = run(code, tmp_path)
    assert [record["event"] for record in records(tmp_path)] == ["Task exception was never retrieved"]
    assert "private thought" not in done.stderr


def test_texts_of_every_script_and_lone_surrogates_are_written(tmp_path: Path) -> None:
    done = run("start(HOME); log.info('odd', text='数据库 ошибка', half='\\ud800')", tmp_path)
    assert "Logging error" not in done.stderr
    [record] = records(tmp_path)
    assert (record["text"], record["half"]) == ("数据库 ошибка", "\ud800")


def test_escape_sequences_and_line_ends_of_a_client_do_nothing_on_the_terminal(tmp_path: Path) -> None:
    done = run(r"start(HOME); log.info('connected', client='\x1b[2Jevil\nINFO forged')", tmp_path)
    assert "\x1b" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_nothing_in_a_log_drives_the_terminal_of_who_reads_it(tmp_path: Path) -> None:
    evil = "\x9b2J \u202eturned hid\u200bden \x1b[2J"
    done = run(
        f"start(HOME); log.info('connected', client={evil!r}); logging.getLogger('other').warning({evil!r})", tmp_path
    )
    [path] = (tmp_path / "logs").iterdir()
    for written in (done.stderr, path.read_text("utf-8")):
        assert "turned" in written
        assert not [c for c in written if c in "\x9b\u202e\u200b\x1b"]
    assert records(tmp_path)[0]["client"] == evil


def test_no_file_is_made_before_the_first_record_or_when_the_setting_says_so(tmp_path: Path) -> None:
    run("start(HOME)", tmp_path / "quiet")
    assert list((tmp_path / "quiet" / "logs").iterdir()) == []
    run("start(HOME, file=False); log.error('x')", tmp_path / "off")
    assert not (tmp_path / "off").exists()


def test_a_process_puts_full_files_aside_and_keeps_a_few(tmp_path: Path) -> None:
    run("start(HOME, max_bytes=10_000, backups=2)\nfor n in range(2000): log.info('filler', n=n)", tmp_path)
    sizes = [path.stat().st_size for path in (tmp_path / "logs").iterdir()]
    assert len(sizes) == 3
    assert all(size <= 10_000 for size in sizes)
    assert records(tmp_path)[-1]["event"] == "filler"


def test_processes_write_files_of_their_own_and_lose_nothing(tmp_path: Path) -> None:
    code = f"{START}\nstart({str(tmp_path)!r})\nfor n in range(200): log.info('mine', n=n)"
    running = [
        subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for _ in range(3)
    ]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert len(list((tmp_path / "logs").iterdir())) == 3
    assert sorted(record["n"] for record in records(tmp_path)) == sorted(list(range(200)) * 3)


def test_old_files_are_deleted_when_a_process_starts(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for number in range(50):
        path = logs / f"agora-20200101T000000Z-{number}.log"
        path.write_text("{}\n", encoding="utf-8")
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    big = logs / "agora-20210101T000000Z-1.log.1"
    big.write_bytes(b"x" * 200_000)
    other = logs / "mine.txt"
    other.write_text("stays", encoding="utf-8")
    run("start(HOME, max_bytes=100_000, backups=1)", tmp_path)
    left = sorted(path.name for path in logs.iterdir())
    assert len(left) == 41
    assert {other.name, big.name, "agora-20200101T000000Z-49.log"} <= set(left)
    run("start(HOME, max_bytes=10_000, backups=1)", tmp_path)
    assert [path.name for path in logs.iterdir()] == [other.name]


def test_configuring_twice_writes_each_record_once(tmp_path: Path) -> None:
    done = run("start(HOME); start(HOME, level='error'); log.info('no'); log.error('once')", tmp_path)
    assert done.stderr.count("once") == 1
    assert [record["event"] for record in records(tmp_path)] == ["once"]


def test_a_log_folder_that_cannot_be_made_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    code = """
    from agora.errors import ConfigError
    try:
        start(HOME)
    except ConfigError as error:
        print(error.message, error.hint)
    """
    done = run(code, tmp_path / "file")
    assert "cannot be made" in done.stdout
    assert "AGORA_HOME" in done.stdout


def test_a_program_without_stderr_still_writes_its_file(tmp_path: Path) -> None:
    run("sys.stderr = None; start(HOME); log.info('silent')", tmp_path)
    assert [record["event"] for record in records(tmp_path)] == ["silent"]
