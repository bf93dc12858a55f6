from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from datetime import datetime

from agora.memory.ranking import VERSION as RANKING
from agora.model.query import Query
from agora.ports.records import State
from agora.text.analysis import VERSION as ANALYSIS


def key_of(query: Query, state: State, profile: str, rights: str = "") -> bytes:
    """32 bytes that are equal only for questions whose answers must be equal.

    They cover every parameter with its times resolved, the namespaces searched with the last change of each, the
    store, the encoder's fingerprint (`profile`), and the versions of ranking and analysis. So a change in any process
    gives another key to exactly the questions that it can touch, and nothing has to be cleared. `rights` is equal for
    callers that may do the same: who may do something else learns nothing of what they asked.
    """
    fields = [asdict(query), state.store, state.sequences, profile, RANKING, ANALYSIS, rights]
    return hashlib.sha256(json.dumps(fields, sort_keys=True, default=_written).encode()).digest()


def _written(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be part of a key")
