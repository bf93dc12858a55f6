from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The one of `names` that `name` was probably meant to be, or None if none is like it.

    Case, `-` and `_` do not count, and the last part of a dotted name is enough: `readers` finds
    `store.readers`. The first of equally near names wins.
    """
    written = _plain(name)
    best: tuple[float, str | None] = (_LIKE_ENOUGH, None)
    for candidate in names:
        plain = _plain(candidate)
        likeness = max(_likeness(written, plain), _likeness(written, plain.rpartition(".")[2]) * _PART)
        if likeness > best[0]:
            best = (likeness, candidate)
    return best[1]


def did_you_mean(name: str, names: Iterable[str], *, otherwise: str) -> str:
    """A hint: "Did you mean X?" with the nearest of `names`, or `otherwise` if none is near."""
    found = nearest(name, names)
    return otherwise if found is None else f"Did you mean {found}?"


# difflib's own default for a close match.
_LIKE_ENOUGH = 0.6
# A whole name that is as like as a part is the better guess.
_PART = 0.95


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_")


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()
