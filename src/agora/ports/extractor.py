from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agora.model.deadline import Deadline
from agora.model.fact import Extracted


@dataclass(frozen=True, slots=True)
class Extraction:
    """The facts that a text states, in its order. `problem`: why the wanted model did not find them, if it did not."""

    facts: tuple[Extracted, ...]
    extracted_by: str
    problem: str | None = None


class Extractor(Protocol):
    """Finds the facts that a text states, and none that it does not. Blocking, thread-safe."""

    def extract(self, text: str, deadline: Deadline) -> Extraction:
        """The facts of `text`; every quote stands in it as it is.

        Raises: DeadlineExceeded, Cancelled.
        """
        ...
