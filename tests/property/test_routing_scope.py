"""What a caller may not use changes nothing of what the caller is shown: no place, no digit."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.router.offering import Offer, asked, catalogue

from agora.router.named import backend_named, tools_meant
from agora.router.select import select

NAMES = ("git", "git__hub", "files", "Files", "天气", "mail/box")
WORDS = (
    "read",
    "write",
    "file",
    "issue",
    "city",
    "weather",
    "search",
    "list",
    "send",
    "mail",
    "the",
    "file.txt",
    "天气预报",
    "письмо",
    "get_issue",
)

texts = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
offers = st.tuples(
    st.lists(st.tuples(st.sampled_from(["get", "list_files", "hub__search", "send", "files/get"]), texts), max_size=4),
    texts,
)
requests = st.lists(texts, min_size=1, max_size=3).map(". ".join)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Offer], frozenset[str]]:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=len(NAMES)))
    made: list[Offer] = []
    for name in names:
        tools, description = draw(offers)
        made.append((name, description, tools))
    return made, frozenset(draw(st.lists(st.sampled_from(NAMES), unique=True)))


@settings(max_examples=150, deadline=None)
@given(worlds(), requests, st.booleans())
def test_what_is_not_allowed_moves_nothing(world: tuple[list[Offer], frozenset[str]], intent: str, blind: bool) -> None:
    made, allowed = world
    whole, seen = catalogue(made), catalogue([offer for offer in made if offer[0] in allowed])
    question = None if blind else asked(intent)

    assert select(intent, whole, question, allowed) == select(intent, seen, question)
    assert select(intent, whole, question, allowed) == select(intent, seen, question, allowed)


@settings(max_examples=150, deadline=None)
@given(worlds(), st.sampled_from(["git__hub__search", "files/get", "FILES", "get", "mail/box/send", "git__get", ""]))
def test_what_is_not_allowed_owns_and_hides_no_name(world: tuple[list[Offer], frozenset[str]], target: str) -> None:
    made, allowed = world
    whole = catalogue(made, vectors=False)
    seen = catalogue([offer for offer in made if offer[0] in allowed], vectors=False)

    assert backend_named(target, whole, allowed) == backend_named(target, seen)
    meant = tools_meant(target, whole, allowed)
    assert meant == tools_meant(target, seen)
    assert all(backend in allowed for backend, _ in meant)
