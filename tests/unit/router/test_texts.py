from __future__ import annotations

import time

import pytest
from tests.unit.router.offering import tools

from agora.router.texts import PARTS, headline, questions, spoken, texts_of


def test_a_name_is_spoken_as_words() -> None:
    assert spoken("github__search_issues") == "github search issues"
    assert spoken("@owner/my-server") == "owner my server"


def test_a_headline_is_the_first_sentence() -> None:
    assert headline("Reads a file. It must exist.") == "Reads a file."
    assert headline("读取文件。文件必须存在。") == "读取文件。"
    assert headline("") == ""
    assert len(headline("word " * 1000)) <= 300


def test_a_backend_has_two_texts_and_each_tool_two() -> None:
    texts = texts_of("my_files", "Files.", tools("my_files", [("read_file", "Reads. All of it."), ("stat", "")]))

    assert texts == (
        "my files: Files.",
        "my files: read file, stat",
        "read file: Reads. All of it.",
        "read file: Reads.",
        "stat: ",
        "stat: ",
    )


def test_a_long_description_is_cut() -> None:
    assert max(map(len, texts_of("a", "x" * 10**6, tools("a", [("b", "y" * 10**6)])))) < 2_100


@pytest.mark.parametrize(
    ("intent", "parts"),
    [
        ("Read the file", ()),
        ("Read the sales data, plot a bar chart and then send it", ("Read the sales data", "plot a bar chart")),
        ("1. find the repository\n2. open an issue", ("find the repository", "open an issue")),
        ("Cerca i file del progetto e poi scrivi il resoconto", ("Cerca i file del progetto", "scrivi il resoconto")),
        ("найди открытые ошибки и создай новую задачу", ("найди открытые ошибки", "создай новую задачу")),
        ("查询数据库的记录，然后生成一份报告", ("查询数据库的记录", "生成一份报告")),
    ],
)
def test_a_request_is_also_asked_in_its_parts(intent: str, parts: tuple[str, ...]) -> None:
    assert questions(intent) == (intent, *parts)


def test_a_request_has_a_bounded_number_of_parts() -> None:
    intent = " ".join(f"Do the thing number {number}." for number in range(1000))

    assert len(questions(intent)) == 1 + PARTS
    assert max(map(len, questions(intent))) <= 4_000


@pytest.mark.parametrize(
    "text",
    ["a" + " " * 10**6 + "b", "\n \t" * 10**5, "and " * 10**5, ", " * 10**5, "1. " * 10**5, "。" * 10**6, "и " * 10**5],
)
def test_no_text_takes_long_to_be_read(text: str) -> None:
    began = time.process_time()
    questions(text)
    headline(text)
    texts_of("a", text, tools("a", [(text[:5000], text)]))

    assert time.process_time() - began < 0.5
