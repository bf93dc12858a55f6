"""Facts as text: what a query finds them by."""

from __future__ import annotations

import json
from typing import Any

from agora.model.fact import FactDraft


def rendered(draft: FactDraft) -> str:
    """The words that a fact was taken from, else subject, key and value in one line."""
    return draft.quote or line(draft.subject, draft.key, draft.value)


def line(subject: str | None, key: str, value: Any) -> str:  # noqa: ANN401 - JSON
    """`key of subject: value`, or `key: value` where everybody knows of what."""
    shown = written(value)
    return f"{key}: {shown}" if subject is None else f"{key} of {subject}: {shown}"


def written(value: Any) -> str:  # noqa: ANN401 - JSON
    """A value as a person would write it: texts as they are, lists with commas, objects as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(each, str | int | float) for each in value):
        return ", ".join(written(each) for each in value)
    return json.dumps(value, ensure_ascii=False)
