"""What a folder's git files say about it, read without starting git.

work tree/.git            a folder, or a file "gitdir: PATH" (worktree, submodule, --separate-git-dir)
PATH/commondir            in a worktree only: where the main repository's git folder is
git folder/config         sections [remote "NAME"] with url = URL
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository that a folder is in: its main work tree, and the remotes of its configuration."""

    main: Path
    """The main work tree, the same for every worktree; of a bare repository its git folder."""
    remotes: tuple[tuple[str, str], ...]
    """Name and URL, in the order of the file, `origin` before all others."""

    def names(self) -> Iterator[tuple[str, str]]:
        """Remotes whose URL holds a name, as (remote, `owner/repo`)."""
        for remote, url in self.remotes:
            name = name_in_url(url)
            if name is not None:
                yield remote, name


def enclosing_repository(folder: Path, *, stop: Path) -> Repository | None:
    """The repository of the nearest folder at or above `folder` that has a `.git`.

    `stop` and what lies above it are not looked at if `folder` is below it, nor is the root.
    """
    for tree in (folder, *folder.parents):
        if tree in (stop, tree.parent):
            return None
        dot = tree / ".git"
        # os.path answers False where it may not look; Path.is_dir raises.
        if os.path.isdir(dot):  # noqa: PTH112 - as above
            return Repository(tree, _remotes(dot))
        if os.path.isfile(dot):  # noqa: PTH113 - as above
            return _linked(tree, dot)
    return None


def name_in_url(url: str) -> str | None:
    """`owner/repo` of a remote's URL: the last two parts of its path, without `.git`; else None.

    Understands `scheme://[user[:password]@]host[:port]/path` and `[user@]host:path`. A path of one part
    gives `host/repo`. A path on this machine has no owner, so it gives None.
    """
    url = url.strip()
    match = _URL.fullmatch(url) or _SCP.fullmatch(url)
    if match is None or match.groupdict().get("scheme", "").casefold() == "file":
        return None
    path = re.split(r"[?#]", match["path"])[0]
    # Azure DevOps writes project/_git/repo, elsewhere project/repo.
    parts = [part for part in unquote(path).split("/") if part.strip(". ~") and part != "_git"]
    if not parts:
        return None
    parts[-1] = re.sub(r"\.git$", "", parts[-1])
    owner = parts[-2].lstrip("~") if len(parts) > 1 else match["host"]
    return f"{owner}/{parts[-1]}" if parts[-1] else None


_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:[^/@]*@)*+(?P<host>\[[^\]/]*\]|[^/:]*)(?::\d*)?/(?P<path>.*)"
)
# One letter before the colon is a Windows drive, a slash makes it a path, a second colon a helper program.
_SCP = re.compile(r"(?:[^/@:]+@)?(?P<host>\[[^\]/]*\]|[^/:@]{2,}):(?P<path>(?!//|:).*)")
_SECTION = re.compile(r'\[\s*(?P<name>[\w.-]+)\s*(?:"(?P<sub>(?:[^"\\]|\\.)*)")?\s*\](?P<rest>.*)')
_SETTING = re.compile(r"(?P<key>[A-Za-z][\w-]*)\s*=\s*(?P<value>.*)")


def _linked(tree: Path, dot: Path) -> Repository:
    pointer = _read(dot)
    if not pointer.startswith("gitdir:"):
        return Repository(tree, ())
    git = Path(os.path.realpath(tree / pointer.removeprefix("gitdir:").strip()))
    common = _read(git / "commondir").strip()
    if not common:
        return Repository(tree, _remotes(git))
    shared = Path(os.path.realpath(git / common))
    # A bare repository kept in a hidden folder has a pointer to it beside it.
    beside = shared.name == ".git" or os.path.isfile(shared.parent / ".git")  # noqa: PTH113 - as above
    return Repository(shared.parent if beside else shared, _remotes(shared))


def _remotes(git: Path) -> tuple[tuple[str, str], ...]:
    urls: dict[str, str] = {}
    remote: str | None = None
    # A backslash at the end of a line goes on in the next.
    for line in re.sub(r"\\\r?\n", "", _read(git / "config")).splitlines():
        rest = line.strip()
        if section := _SECTION.match(rest):
            named = section["name"].casefold() == "remote" and section["sub"] is not None
            remote = re.sub(r"\\(.)", r"\1", section["sub"]) if named else None
            rest = section["rest"].strip()
        setting = _SETTING.match(rest)
        if remote is not None and setting and setting["key"].casefold() == "url":
            # With several, git fetches from the first.
            urls.setdefault(remote, _unquoted(setting["value"]))
    return tuple(sorted(urls.items(), key=lambda item: item[0] != "origin"))


def _unquoted(value: str) -> str:
    """A value of a git configuration file without quotes, escapes and trailing comment."""
    text = ""
    quoted = False
    pieces = re.findall(r'\\.|"|[#;]|[^\\"#;]+', value)
    for piece in pieces:
        if piece == '"':
            quoted = not quoted
        elif piece in "#;" and not quoted:
            break
        else:
            text += piece.removeprefix("\\")
    return text.strip()


def _read(path: Path) -> str:
    """The text of a small file; empty if it cannot be read, as after a worktree's repository was moved."""
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
