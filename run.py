"""Set up Agora in `.venv` and run it: `python run.py demo`, `python run.py test`, `python run.py check`.

Needs Python 3.11 and its standard library, nothing else. This file must parse on much older versions,
which are told what is missing; so it does without `from __future__ import annotations` and newer syntax.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the people who need this line run an older version
    sys.exit(
        "Agora needs Python 3.11 or newer; this is Python %d.%d (%s).\n"  # noqa: UP031 - parses everywhere
        "Run this file with a newer one, for example: python3.11 run.py demo"
        % (sys.version_info[0], sys.version_info[1], sys.executable)
    )

import difflib
import hashlib
import importlib.util
import json
import os
import subprocess
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STAMP = VENV / "agora-setup.json"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")

USAGE = """\
python run.py demo            one agent saves a note, another finds it by meaning
python run.py test [ARGS]     run the tests; ARGS go to pytest
python run.py coverage [ARGS] run them and say which lines they ran, which takes about twice as long
python run.py check           lint, format, types, import contracts
python run.py conformance     the official conformance suite, backends from npm, a small language model
                              (installs Node and the model beside the tests, about 200 MB)
python run.py agora [ARGS]    the agora command
The first run makes .venv beside this file and installs what it needs there."""

ENOUGH = 4 * 1024**3
"""Free bytes in memory from which on the tests keep their folders there; they have needed less than one."""

# The dependency groups of pyproject.toml that a command needs beside the project itself.
GROUPS = {
    "demo": (),
    "agora": (),
    "test": ("test",),
    "coverage": ("test",),
    "check": ("test", "lint"),
    "conformance": ("test", "conformance", "model-server"),
}


def main(arguments: list[str]) -> int:
    """The exit code of the command that `arguments` name; 2 if they name none."""
    if not arguments or arguments[0] in {"-h", "--help", "help"}:
        print(USAGE, file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    command, *rest = arguments
    if command not in GROUPS:
        near = difflib.get_close_matches(command, GROUPS, 1)
        print(f"Unknown command {command!r}." + (f" Did you mean {near[0]}?" if near else ""), file=sys.stderr)
        print(USAGE, file=sys.stderr)
        return 2
    set_up(GROUPS[command])
    if command == "check":
        return check()
    if command == "conformance":
        return replace_by("-m", "tests.conformance.run", *rest)
    if command in {"test", "coverage"}:
        # Most tests wait for processes of their own: one worker more than cores keeps these busy. A file's tests stay
        # together: some share a server. In the order of the folders, the short ones come last and end at once.
        workers = ("-n", str(min(4, (os.cpu_count() or 1) + 1)))
        spread = (*workers, "--dist", "loadfile", "--no-loadscope-reorder", "--durations", "20")
        measured = ("--cov", "--cov-report=term") if command == "coverage" else ()
        ease()
        return replace_by("-m", "pytest", *measured, *spread, *rest)
    return replace_by("-m", "agora", *(["demo"] if command == "demo" else []), *rest)


def ease() -> None:
    """Spare the tests what costs time and tests nothing: modules compiled again in each process, waits for a disk."""
    # Tests start more than a thousand processes, and a fifth of the time of each would go to compiling.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    memory = Path("/dev/shm")  # noqa: S108 - pytest makes a folder in it that is its user's alone
    if "PYTEST_DEBUG_TEMPROOT" in os.environ or not memory.is_dir() or not hasattr(os, "statvfs"):
        return
    found = os.statvfs(memory)
    # Containers often have little of it, or none from which a program can be started.
    if found.f_bavail * found.f_frsize >= ENOUGH and not found.f_flag & os.ST_NOEXEC and os.access(memory, os.W_OK):
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(memory)


def set_up(groups: tuple[str, ...]) -> None:
    """Make `.venv` hold the project and `groups`; nothing is done if it does already."""
    usable = works(f"import sys; assert sys.version_info[:2] == {sys.version_info[:2]}")
    key = fingerprint()
    stamp = read_stamp() if usable else {}
    current = stamp.get("key") == key
    have = set(stamp["groups"]) if current else set()
    if current and have.issuperset(groups):
        return
    if not usable or not works("import pip"):
        make_venv()
        have = set()
    # One call for all: pip then settles versions that suit each of them.
    wanted = sorted(have.union(groups))
    what = "Agora" if not wanted else f"Agora and what {' and '.join(wanted)} needs"
    say(f"Installing {what} into .venv (the first time takes a minute or two)")
    started = time.monotonic()
    STAMP.unlink(missing_ok=True)
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    quietly([str(PYTHON), *pip, "--editable", str(ROOT), *requirements(wanted)], "The installation failed.")
    STAMP.write_text(json.dumps({"key": key, "groups": wanted}), encoding="utf-8")
    say(f"Installed in {time.monotonic() - started:.0f} s")


def make_venv() -> None:
    """Make `.venv` anew with the Python that runs this file."""
    # Debian and Ubuntu leave out ensurepip, without which a new environment has no pip.
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        sys.exit(
            "This Python cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv\n"
            "Then run the same command again."
        )
    say(f"{'Rebuilding' if VENV.exists() else 'Making'} .venv with Python {sys.version.split()[0]}")
    quietly([sys.executable, "-m", "venv", "--clear", str(VENV)], "The virtual environment cannot be made.")


def check() -> int:
    """1 if any check fails; all of them run, so that one run shows everything."""
    suffix = ".exe" if os.name == "nt" else ""
    python = str(PYTHON)
    checks = {
        "lint": [python, "-m", "ruff", "check", "."],
        "format": [python, "-m", "ruff", "format", "--check", "."],
        "rules for tests": [python, "scripts/lint_tests.py"],
        "import contracts": [str(BIN / f"lint-imports{suffix}")],
        "types": [python, "-m", "mypy"],
    }
    failed = []
    for name, command in checks.items():
        say(f"{name}: {' '.join([Path(command[0]).stem, *command[1:]])}")
        if subprocess.call(command, cwd=ROOT) != 0:
            failed.append(name)
    say(f"failed: {', '.join(failed)}" if failed else "all checks passed")
    return 1 if failed else 0


def works(code: str) -> bool:
    """Whether the Python in `.venv` runs `code` without a complaint."""
    try:
        done = subprocess.run([str(PYTHON), "-c", code], capture_output=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def fingerprint() -> str:
    """Changes when the installation has to be repeated: other requirements, Python or place."""
    parts = [(ROOT / "pyproject.toml").read_bytes(), sys.version.encode(), os.fsencode(ROOT)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def read_stamp() -> dict[str, Any]:
    """What the last complete installation left behind, `key` and `groups`; empty if there is none."""
    try:
        return dict(json.loads(STAMP.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def requirements(groups: list[str]) -> list[str]:
    """The requirements in dependency groups of pyproject.toml."""
    # Read here, since `pip install --group` needs a newer pip than most installations have.
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    return [requirement for group in groups for requirement in tables[group]]


def quietly(command: list[str], failure: str) -> None:
    """Run `command`; show its output only if it fails, and then end this program."""
    # A personal pip setting for user installs makes pip refuse every virtual environment.
    env = {**os.environ, "PIP_USER": "0"}
    done = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stdout.decode(errors="replace"))
        sys.exit(f"{failure} What went wrong is above.")


def replace_by(*arguments: str) -> int:
    """Become the Python in `.venv` with `arguments`; where that is not possible, its exit code."""
    command = [str(PYTHON), *arguments]
    if arguments[1] == "pytest":
        os.chdir(ROOT)
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name != "nt":
        # Signals and the end of input then reach the command itself.
        os.execv(command[0], command)  # noqa: S606 - the file was made by this program
    process = subprocess.Popen(command)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            # Ctrl-C has reached the command too; its exit code is what counts.
            continue


def say(line: str) -> None:
    """One line on stderr: stdout belongs to the command."""
    print(f"[run.py] {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
