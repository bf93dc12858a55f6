"""The little JSON that passing lines needs, without importing `json`, which takes as long as the rest together."""

from __future__ import annotations

try:
    from _json import encode_basestring_ascii, make_scanner
except ImportError:  # another Python than CPython
    from json.decoder import JSONDecoder
    from json.encoder import py_encode_basestring_ascii as encode_basestring_ascii

    _scan = JSONDecoder().scan_once  # type: ignore[attr-defined] # it has, in every release
else:

    class _Rules:
        strict = True
        object_hook = None
        object_pairs_hook = None
        parse_float = float
        parse_int = int
        parse_constant = float

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
    """The JSON value that `text` is; None for what is none, and for what nobody could read."""
    try:
        return _scan(text, len(text) - len(text.lstrip(" \t\r\n")))[0]
    except (ValueError, StopIteration, RecursionError, SystemError):
        # SystemError: what CPython 3.11 makes of a recursion error in its scanner.
        return None


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
