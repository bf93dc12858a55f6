"""Backends for the tests of routing, with vectors of the shipped fake encoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agora.model.backend import ToolDefinition
from agora.model.deadline import Deadline
from agora.router.catalogue import Catalogue, Matrix
from agora.router.texts import questions, texts_of
from agora.testing import FakeEncoder

ENCODER = FakeEncoder()
LONG = Deadline(1e6)

Offer = tuple[str, str, Sequence[tuple[str, str]]]
"""Name, description, and the names and descriptions of the tools."""

OFFICE: tuple[Offer, ...] = (
    (
        "github",
        "Repositories, issues and pull requests on GitHub.",
        (("search_issues", "Search the issues of a repository."), ("create_issue", "Open a new issue.")),
    ),
    ("weather", "Forecasts for any city.", (("get_forecast", "The weather forecast of the next days for a city."),)),
    ("files", "Reads and writes files on this machine.", (("read_file", "Read a text file."), ("write_file", ""))),
)


def tools(name: str, offered: Sequence[tuple[str, str]]) -> list[ToolDefinition]:
    return [ToolDefinition(name, tool, description) for tool, description in offered]


def encoded(texts: Sequence[str]) -> Matrix:
    return np.stack(ENCODER.encode_all(texts, LONG))


def asked(intent: str) -> Matrix:
    return encoded(questions(intent))


def added(catalogue: Catalogue, offer: Offer, *, vectors: bool = True) -> Catalogue:
    name, description, offered = offer
    given = tools(name, offered)
    return catalogue.with_backend(
        name, description, given, encoded(texts_of(name, description, given)) if vectors else None
    )


def catalogue(offers: Sequence[Offer] = OFFICE, *, vectors: bool = True) -> Catalogue:
    found = Catalogue()
    for offer in offers:
        found = added(found, offer, vectors=vectors)
    return found
