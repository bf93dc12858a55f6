from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
from tests.unit.router.offering import OFFICE, Offer, added, asked, catalogue, encoded, tools

from agora.config.gateway import GatewaySettings
from agora.errors import InvalidInput
from agora.router.catalogue import Catalogue
from agora.router.select import Candidate, Selection, decide, select
from agora.router.texts import questions, texts_of


@dataclass(frozen=True)
class At:
    mode: Literal["margin", "semantic"] = "margin"
    read_threshold: float = 0.5
    write_threshold: float = 0.6
    semantic_threshold: float = 0.5


def pick(intent: str, held: Catalogue, allowed: frozenset[str] | None = None) -> Selection:
    return select(intent, held, asked(intent), allowed)


def test_a_request_finds_the_backend_and_the_tool_that_speak_of_it() -> None:
    found = pick("search the issues of a repository", catalogue())

    assert (found.candidates[0].backend, found.candidates[0].tool) == ("github", "search_issues")
    assert found.candidates[0].margin > 0
    assert all(candidate.margin == 0 for candidate in found.candidates[1:])
    assert (found.tools[0].backend, found.tools[0].tool) == ("github", "search_issues")
    assert not found.degraded


def test_candidates_are_one_a_backend_and_sorted() -> None:
    found = pick("read the weather forecast from a text file", catalogue())

    assert sorted(candidate.backend for candidate in found.candidates) == ["files", "github", "weather"]
    scores = [candidate.score for candidate in found.candidates]
    assert scores == sorted(scores, reverse=True)


def test_equal_backends_stand_in_the_order_of_their_names() -> None:
    offers = [(name, "Same.", (("b", "Say it."), ("a", "Say it."))) for name in ("zeta", "alpha", "mid")]
    found = select("say it", catalogue(offers, vectors=False), None)

    assert [candidate.backend for candidate in found.candidates] == ["alpha", "mid", "zeta"]
    assert {candidate.tool for candidate in found.candidates} == {"a"}


def test_a_request_with_two_errands_finds_both_backends() -> None:
    found = pick("Get the weather forecast for a city, and then open a new issue on GitHub.", catalogue())

    assert {candidate.backend for candidate in found.candidates[:2]} == {"weather", "github"}


def test_no_more_than_the_limit_come_back() -> None:
    found = select("read a file", catalogue(), asked("read a file"), limit=2)

    assert (len(found.candidates), len(found.tools)) == (2, 2)
    assert select("read a file", catalogue(), asked("read a file"), limit=0).candidates == ()


def test_an_empty_catalogue_gives_nothing_and_decides_nothing() -> None:
    found = pick("anything at all", Catalogue())

    assert found == Selection()
    assert decide(found, lambda _backend, _tool: True, At(read_threshold=0)) is None


def test_nobody_allowed_is_as_an_empty_catalogue() -> None:
    assert pick("read a file", catalogue(), frozenset()) == Selection()


def test_without_an_encoder_words_alone_decide_and_the_selection_says_so() -> None:
    found = select("search the issues", catalogue(), None)

    assert found.degraded
    assert found.candidates[0].backend == "github"
    assert found.candidates[0].cosine == 0
    assert found.nearest is None
    assert decide(found, lambda _backend, _tool: True, At(read_threshold=0)) is None


def test_a_backend_without_vectors_is_found_by_its_words_named_and_not_called() -> None:
    held = added(catalogue(OFFICE[:2]), OFFICE[2], vectors=False)
    found = pick("read text file", held)

    assert (found.unread, found.degraded) == (("files",), False)
    assert found.candidates[0].backend == "files"
    assert decide(found, lambda _backend, _tool: True, At(read_threshold=0)) is None
    assert pick("read text file", held, frozenset({"github"})).unread == ()


def test_vectors_of_another_encoder_count_as_none() -> None:
    question = np.ones((1, 32), np.float32) / np.sqrt(np.float32(32))
    found = select("read text file", catalogue(), question)

    assert found.degraded
    assert found == select("read text file", catalogue(), None)


@pytest.mark.parametrize("intent", ["", "   ", "\n", "🙂", "\ud800", "a" * 100_000, "и, e, and then", "，。；", "\0"])
def test_odd_requests_are_answered(intent: str) -> None:
    found = pick(intent, catalogue())

    assert len(found.candidates) == 3
    assert all(np.isfinite(candidate.score) for candidate in found.candidates)


def test_a_tool_without_a_description_is_found_by_its_name() -> None:
    found = pick("write file", catalogue())

    assert (found.candidates[0].backend, found.candidates[0].tool) == ("files", "write_file")


@pytest.mark.parametrize(
    ("intent", "backend"),
    [
        ("cerca gli articoli di un autore", "biblioteca"),
        ("найти ошибки в журналах", "журнал"),
        ("查询数据库中的记录", "数据库"),
    ],
)
def test_words_of_other_languages_are_found_too(intent: str, backend: str) -> None:
    offers: list[Offer] = [
        ("biblioteca", "", (("cerca", "Cerca articoli per autore e titolo."),)),
        ("журнал", "", (("найди", "Ищет ошибку в журнале сервера."),)),
        ("数据库", "", (("查询", "查询数据库里的记录。"),)),
    ]

    assert select(intent, catalogue(offers, vectors=False), None).candidates[0].backend == backend


def test_a_backend_without_tools_is_no_candidate() -> None:
    held = added(catalogue(), ("empty", "Read a text file.", ()))

    assert "empty" not in {candidate.backend for candidate in pick("read a text file", held).candidates}


def test_a_number_of_vectors_that_fits_no_question_is_refused() -> None:
    intent = "Read the text file. Then open a new issue. Then tell me the weather."
    with pytest.raises(InvalidInput, match="question_vector"):
        select(intent, catalogue(), asked(intent)[:2])


def test_one_vector_stands_for_the_whole_request() -> None:
    intent = "Read the text file. Then open a new issue."
    whole = select(intent, catalogue(), asked(intent)[0])

    assert len(questions(intent)) == 3
    assert whole.candidates[0].parts["whole"] == pytest.approx(whole.candidates[0].parts["best_part"])


def test_a_call_is_decided_by_score_and_margin_and_writing_needs_more() -> None:
    first = Candidate("github", "create_issue", 0.4, 0.5, 0.5, margin=0.15)
    selection = Selection((first,), (first,), first)

    assert decide(selection, lambda _backend, _tool: True, At()) is first
    assert decide(selection, lambda _backend, _tool: False, At()) is None
    assert decide(selection, lambda _backend, _tool: False, At(write_threshold=0.55)) is first
    assert decide(selection, lambda backend, tool: (backend, tool) == ("github", "create_issue"), At()) is first


@pytest.mark.parametrize("mode", ["margin", "semantic"])
def test_what_words_alone_found_is_never_called(mode: Literal["margin", "semantic"]) -> None:
    first = Candidate("github", "search_issues", 1.0, 1.0, 1.0, margin=1.0)

    assert decide(Selection((first,), (first,), first), lambda _backend, _tool: True, At(mode)) is first
    assert decide(Selection((first,), (first,), first, degraded=True), lambda _backend, _tool: True, At(mode)) is None


def test_of_two_backends_with_the_same_best_tool_the_one_with_more_that_fit_is_first() -> None:
    best = ("read_file", "Read a file.")
    offers: list[Offer] = [
        ("a", "", (best, ("zebra", "Stripes."), ("yak", "Horns."))),
        ("b", "", (best, ("copy_file", "Copy a file."), ("send_file", "Send a file."))),
    ]

    assert select("read a file", catalogue(offers, vectors=False), None).candidates[0].backend == "b"


def test_the_mode_semantic_looks_at_the_nearest_tool_alone() -> None:
    first, nearest = Candidate("a", "one", 0.9, 0.3, 0.9, margin=0.5), Candidate("b", "two", 0.1, 0.5, 0.0)
    selection = Selection((first,), (first,), nearest)

    assert decide(selection, lambda _backend, _tool: False, At("semantic")) is nearest
    assert decide(selection, lambda _backend, _tool: True, At("semantic", semantic_threshold=0.51)) is None


def test_the_settings_of_the_gateway_are_thresholds() -> None:
    first = Candidate("a", "one", 0.3, 0.3, 0.9, margin=0.25)

    assert decide(Selection((first,)), lambda _backend, _tool: True, GatewaySettings()) is first
    assert decide(Selection((first,)), lambda _backend, _tool: False, GatewaySettings()) is None


def test_a_backend_that_is_alone_is_not_called_for_anything() -> None:
    found = pick("how do I cook a steak for my guests tonight", catalogue([OFFICE[0]]))

    assert found.candidates[0].backend == "github"
    assert decide(found, lambda _backend, _tool: True, At()) is None


def test_a_changed_backend_is_as_if_it_had_been_so_from_the_start() -> None:
    new: Offer = ("weather", "Tides and waves.", (("get_tides", "The tides of a harbour."), ("get_waves", "")))
    changed = added(catalogue(), new)
    fresh = catalogue([OFFICE[0], new, OFFICE[2]])

    for intent in ("the tides of a harbour", "the weather forecast of a city", "search issues"):
        assert pick(intent, changed) == pick(intent, fresh)
    assert pick("the weather forecast", catalogue()) != pick("the weather forecast", changed)


def test_a_removed_backend_leaves_nothing_behind() -> None:
    without = catalogue().without_backend("weather")

    assert pick("the weather forecast", without) == pick("the weather forecast", catalogue([OFFICE[0], OFFICE[2]]))
    assert without.without_backend("weather") is without


def test_of_two_tools_of_one_name_the_first_counts() -> None:
    held = added(Catalogue(), ("twice", "", (("go", "Read a file."), ("go", "Delete all."), ("stop", "Stop it."))))

    assert len(held) == 2
    assert held.backends["twice"].tools["go"].description == "Read a file."
    assert pick("stop it", held).candidates[0].tool == "stop"


def test_vectors_of_another_number_or_length_are_refused() -> None:
    name, description, offered = OFFICE[1]
    given = tools(name, offered)
    vectors = encoded(texts_of(name, description, given))
    with pytest.raises(InvalidInput, match="4 texts"):
        catalogue(OFFICE[:1]).with_backend(name, description, given, vectors[:-1])
    with pytest.raises(InvalidInput, match="shape"):
        catalogue(OFFICE[:1]).with_backend(name, description, given, vectors[:, :-1])


def test_ten_thousand_tools_are_searched_and_changed_quickly() -> None:
    rng = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(3000)])
    held = Catalogue()
    for number in range(500):
        name = f"backend{number}"
        offered = [(f"tool_{number}_{each}", " ".join(words[rng.integers(3000, size=12)])) for each in range(20)]
        given = tools(name, offered)
        vectors = rng.standard_normal((len(texts_of(name, "", given)), 384)).astype(np.float32)
        held = held.with_backend(name, "", given, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    question = rng.standard_normal((4, 384)).astype(np.float32)
    intent = "word1 word2 word3. Then word4 word5 word6. Then word7 word8 word9 of tool 7."
    assert len(held) == 10_000
    assert len(questions(intent)) == 4

    select(intent, held, question)
    spent = [_cpu(lambda: select(intent, held, question)) for _ in range(9)]
    listed = held.backends["backend7"]
    changes = [
        _cpu(lambda: held.with_backend("backend7", "", list(listed.tools.values())[:10], None)) for _ in range(5)
    ]

    # Far above what it takes on an idle machine, far below what a loop over all tools would take.
    assert sorted(spent)[4] < 0.15
    assert sorted(changes)[2] < 0.3


def _cpu(act: object) -> float:
    began = time.process_time()
    assert callable(act)
    act()
    return time.process_time() - began
