"""The little JSON that passing lines needs, without importing `json`, which takes as long as the rest together."""

from __future__ import annotations

LEVELS = 200
"""Objects and lists within each other that a server reads; a test holds it against the server's."""


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears twice")
    return found


def _constant(name: str) -> object:
    raise ValueError(name)


try:
    from _json import encode_basestring_ascii, make_scanner
except ImportError:  # another Python than CPython
    from json.decoder import JSONDecoder
    from json.encoder import py_encode_basestring_ascii as encode_basestring_ascii

    _scan = JSONDecoder(object_pairs_hook=_object, parse_constant=_constant).scan_once  # type: ignore[attr-defined] # it has, in every release
else:

    class _Rules:
        strict = True
        object_hook = None
        object_pairs_hook = staticmethod(_object)
        parse_float = float
        parse_int = int
        parse_constant = staticmethod(_constant)

    _scan = make_scanner(_Rules)  # type: ignore[arg-type] # it asks for these six names alone


def quoted(text: str) -> str:
    """The text as JSON."""
    found: str = encode_basestring_ascii(text)
    return found


def scan(text: str, at: int) -> tuple[object, int]:
    """The JSON value that begins at `at`, and where it ends.

    Raises: ValueError, StopIteration, RecursionError if there is none that could be read.
    """
    found: tuple[object, int] = _scan(text, at)
    return found


def value_of(text: str) -> object:
    """The JSON value that `text` is; None for what is none, and for what nobody could read.

    A server reads the same: what it refuses without knowing whose it is must not count as a call that waits.
    """
    try:
        found, end = _scan(text, len(text) - len(text.lstrip(_BLANKS)))
    except (ValueError, StopIteration, RecursionError, SystemError):
        # SystemError: what CPython 3.11 makes of a recursion error in its scanner.
        return None
    if text[end:].strip(_BLANKS):
        return None
    # Counting is cheap, and few lines have this many.
    if text.count("{") + text.count("[") > LEVELS and _depth(found) > LEVELS:
        return None
    return found


_BLANKS = " \t\r\n"


def _depth(value: object) -> int:
    level, found = [value], 0
    while level := [each for each in level if isinstance(each, (dict, list))]:
        found += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return found


def is_text(text: str) -> bool:
    """Whether it holds no half of a character, which no file and no other program could take."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def written(value: object) -> str:
    """A plain value (texts, numbers, lists and objects of them) as JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{quoted(name)}:{written(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return str(value)
