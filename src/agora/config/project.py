from __future__ import annotations

import hashlib
import os
import re
import sys
import unicodedata
from pathlib import Path

from agora.config.gitremote import Repository, enclosing_repository
from agora.errors import InvalidInput, InvalidNamespace

DEFAULT = "default"
"""The namespace of calls that belong to no project."""

LONGEST = 128
"""Characters in a namespace name, at most."""


def canonical_namespace(name: str) -> str:
    """The one spelling of `name`: Unicode NFC, case folded, `_` as `-`, no outer white space.

    A canonical name is its own canonical name. It has 1 to 128 characters: letters and digits of any
    script and `. / - + @ :`; between slashes there is always something, and never `.` or `..`.

    Raises: InvalidNamespace with the reason.
    """
    # Folding text is linear in its length, but nobody needs the canonical form of a megabyte.
    if len(name) > 8 * LONGEST:
        raise InvalidNamespace("namespace", f"longer than {LONGEST} characters", name)
    folded = _folded(name.strip()).replace("_", "-")
    if reason := _fault(folded):
        raise InvalidNamespace("namespace", reason, name, hint="Use a name like owner/repo.")
    return folded


def project_namespace(folder: Path, *, home: Path | None = None) -> tuple[str, str]:
    """The namespace of the project that `folder` is part of, and the rule that found it, in words.

    1. The user's home folder (`home`, else as the platform says) and the root of a file system are no
       project: `default`.
    2. In a git work tree: `owner/repo` of the remote `origin`, else of the first remote that has such a
       name. Every worktree of one repository agrees, a submodule goes by its own remotes, and host,
       user and password are left out.
    3. Else the name of the main work tree or of the folder itself, and six digits of its path's SHA-256.

    Files are read, no program is started. A folder that does not exist is named all the same.

    Raises: InvalidInput if the text cannot be a path.
    """
    _check(folder)
    try:
        here = Path(os.path.realpath(folder))
        top = Path(os.path.realpath(home if home is not None else Path("~").expanduser()))
    except RuntimeError as error:
        raise InvalidInput("home", "the user's home folder is not known", hint="Set HOME.") from error
    if here.parent == here:
        return DEFAULT, "root of a file system"
    if _path_key(here) == _path_key(top):
        return DEFAULT, "home folder"
    # Dotfiles kept in git at home do not make one project of everything below it.
    repository = enclosing_repository(here, stop=top)
    if repository is None:
        return _by_path(here), "folder"
    return _by_remote(repository) or (_by_path(repository.main), "git folder")


def namespace_of_path(folder: Path) -> tuple[str, str]:
    """As `project_namespace`, of a folder that may be another machine's: by its path as it is written.

    Nothing is looked up: what lies at that path here is nobody's business who only says that it works there.

    Raises: as `project_namespace`.
    """
    _check(folder)
    return (DEFAULT, "root of a file system") if folder.parent == folder else (_by_path(folder), "its path")


def _check(folder: Path) -> None:
    if "\0" in str(folder):
        raise InvalidInput("folder", "has a NUL character, which no path can have", str(folder))
    try:
        os.fsencode(folder)
    except UnicodeEncodeError as error:
        raise InvalidInput("folder", "has half of a character, which no path can have", str(folder)) from error


def _by_remote(repository: Repository) -> tuple[str, str] | None:
    for remote, name in repository.names():
        try:
            return canonical_namespace(_fitting(name)), f"git remote {remote}"
        except InvalidNamespace:
            # Nothing usable is left of an odd name; the next remote or the path decides.
            continue
    return None


def _by_path(folder: Path) -> str:
    digits = hashlib.sha256(_path_key(folder)).hexdigest()[:6]
    name = _fitting(folder.name)[: LONGEST - 7].strip("-.") or "folder"
    return canonical_namespace(f"{name}-{digits}")


# There, two spellings of a path that differ in case or in Unicode form are one folder.
_FOLDS_CASE = sys.platform in {"win32", "darwin"}


def _path_key(path: Path) -> bytes:
    return os.fsencode(_folded(str(path)) if _FOLDS_CASE else str(path))


def _folded(text: str) -> str:
    # Decomposed before folding: otherwise some Greek letters would fold one way in NFC and another in NFD.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


def _fitting(text: str) -> str:
    """`text` with runs of characters that no name may have turned into one `-`."""
    kept = "".join(char if _allowed(char) else "-" for char in _folded(text).replace("_", "-"))
    return re.sub(r"-{2,}", "-", kept).strip("-")


def _fault(name: str) -> str | None:
    if not name:
        return "empty"
    if len(name) > LONGEST:
        return f"longer than {LONGEST} characters"
    wrong = next((char for char in name if not _allowed(char)), None)
    if wrong is not None:
        return f"may not contain {wrong!r}"
    parts = name.split("/")
    if "" in parts:
        return "begins or ends with '/', or has two in a row"
    if not {".", ".."}.isdisjoint(parts):
        return "may not have '.' or '..' between slashes"
    return None


def _allowed(char: str) -> bool:
    # Marks (M) belong to the letters of many scripts, vowels of Hindi and Thai among them.
    return char in "./-+@:" or unicodedata.category(char)[0] in "LM" or unicodedata.category(char) == "Nd"
