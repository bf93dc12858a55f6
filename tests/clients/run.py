"""Real clients register Agora by their own commands and connect: `python -m tests.clients.run [claude codex gemini]`.

Each gets a throw-away home. They come from npm, pinned, into `.venv/clients`; that is about 1 GB, so this is no
part of the tests that run at every change. Nothing is asked of any model, and no account is needed.

Needs the dependency group `conformance`, which brings Node. Linux and macOS.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.conformance.run import ROOT, node

PACKAGES = {
    "claude": "@anthropic-ai/claude-code@2.1.332",
    "codex": "@openai/codex@0.171.0",
    "gemini": "@google/gemini-cli@0.61.0",
}
PLACE = ROOT / ".venv" / "clients"
AGORA = Path(sys.executable).parent / "agora"
PATIENCE = 120


class Home:
    """A home of its own for one client, with Agora's data inside it."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "TERM"}}
        programs = [str(PLACE / "node_modules" / ".bin"), str(AGORA.parent), kept["PATH"]]
        self.folder = folder
        self.environment: Mapping[str, str] = kept | {
            "HOME": str(folder),
            "AGORA_HOME": str(folder / "agora"),
            "PATH": os.pathsep.join(programs),
        }

    def run(self, *command: str) -> str:
        """What a command says, whatever its exit status."""
        done = subprocess.run(
            command,
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return done.stdout


def claude(home: Home) -> str:
    """The line in which Claude Code tells that it is connected."""
    home.run("claude", "mcp", "add", "-s", "user", "agora", "--", str(AGORA), "serve")
    return told(home.run("claude", "mcp", "list"), r"^agora: .*Connected$")


def gemini(home: Home) -> str:
    """The line in which Gemini CLI tells that it is connected."""
    settings = home.folder / ".gemini"
    settings.mkdir()
    (settings / "trustedFolders.json").write_text(json.dumps({str(home.work): "TRUST_FOLDER"}), "utf-8")
    home.run("gemini", "mcp", "add", "-s", "user", "agora", str(AGORA), "serve")
    return told(home.run("gemini", "mcp", "list"), r"agora: .*Connected$")


def codex(home: Home) -> str:
    """The tools that Codex has found: its `mcp list` shows the configuration alone, its server connects."""
    variable = f"AGORA_HOME={home.environment['AGORA_HOME']}"
    home.run("codex", "mcp", "add", "agora", "--env", variable, "--", str(AGORA), "serve")
    process = subprocess.Popen(
        ["codex", "app-server"],
        cwd=home.work,
        env=home.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    late = threading.Timer(PATIENCE, process.kill)
    late.start()
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        info = {"name": "agora-test", "title": "test", "version": "1"}
        for message in (
            {"id": 1, "method": "initialize", "params": {"clientInfo": info}},
            {"method": "initialized"},
            {"id": 2, "method": "mcpServerStatus/list", "params": {}},
        ):
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
        for line in process.stdout:
            answer = json.loads(line)
            if answer.get("id") == 2:
                servers = {server["name"]: server for server in answer["result"]["data"]}
                names = sorted(servers["agora"]["tools"])
                if "agora_query" not in names:
                    raise AssertionError(f"Codex found no tools of Agora: {answer}")
                return f"agora: {len(names)} tools"
        raise AssertionError("Codex told nothing of its servers")
    finally:
        late.cancel()
        process.kill()
        process.communicate()


def told(output: str, pattern: str) -> str:
    """The line of `output` that matches.

    Raises: AssertionError, with all of the output.
    """
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    found = re.search(pattern, plain, re.MULTILINE)
    if found is None:
        raise AssertionError(plain)
    return found[0].strip()


CLIENTS: dict[str, Callable[[Home], str]] = {"claude": claude, "codex": codex, "gemini": gemini}


def main(names: list[str]) -> int:
    """0 if every client that is named, or all of them, connected."""
    wanted = names or list(CLIENTS)
    install(wanted)
    failed = False
    for name in wanted:
        # Codex refuses to work in a temporary folder of the system.
        with tempfile.TemporaryDirectory(dir=PLACE) as folder:
            home = Home(Path(folder))
            try:
                print(f"{PACKAGES[name]}: {CLIENTS[name](home)}", flush=True)
            except AssertionError as error:
                failed = True
                print(f"{PACKAGES[name]}: NOT CONNECTED\n{error}", flush=True)
            # Through the shared server, which the client's session has started.
            print(f"  {home.run(str(AGORA), 'server', 'stop').strip()}", flush=True)
    return int(failed)


def install(names: list[str]) -> None:
    """Put the clients into `.venv/clients`."""
    PLACE.mkdir(parents=True, exist_ok=True)
    if not (PLACE / "package.json").exists():
        (PLACE / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    options = ["--no-audit", "--no-fund", "--loglevel=error"]
    node("npm", "install", *options, *(PACKAGES[name] for name in names), cwd=PLACE, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
