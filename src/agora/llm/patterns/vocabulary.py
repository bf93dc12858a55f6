from __future__ import annotations


def words(*lines: str) -> frozenset[str]:
    """The words that stand in `lines`, separated by blanks: a list that reads like one."""
    return frozenset(" ".join(lines).split())
