"""JSON as editors write it: with comments and commas too many."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

_COMMENT = re.compile(r'(?P<text>"(?:\\.|[^"\\])*+")|//[^\n]*|/\*(?:[\s\S]*?\*/|[\s\S]*)', re.DOTALL)
_COMMA = re.compile(r'(?P<text>"(?:\\.|[^"\\])*+")|,(?=\s*[}\]])', re.DOTALL)
_NOT_LINE_END = re.compile(r"[^\n]")


class Pairs(dict[str, Any]):
    """A JSON object; of a name that is written twice the last one counts, as for every client, and `twice` has it."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.twice = frozenset(name for name, n in Counter(name for name, _ in pairs).items() if n > 1)


def loads(text: str) -> Any:  # noqa: ANN401 - JSON
    """What `text` says; objects are `Pairs`. Comments and a comma before a closing bracket are passed over.

    Raises: ValueError; its words name line and column, and show nothing of the text.
    """
    try:
        return json.loads(_plain(text), object_pairs_hook=Pairs)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise ValueError("nested too deep") from None
    except ValueError:
        raise ValueError("a number has too many digits") from None


def _plain(text: str) -> str:
    """The same with blanks where comments and needless commas were, so that places stay."""
    without = _COMMENT.sub(lambda match: match["text"] or _NOT_LINE_END.sub(" ", match[0]), text)
    return _COMMA.sub(lambda match: match["text"] or " ", without)
