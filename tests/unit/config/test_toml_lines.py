from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from agora.config.toml_file import Lines

TEXT = '''\
title = """
[[backends]]
name = "not one"
"""   # [[backends]]
[[backends]]                     # 5
name = "a"
args = [
  "[[backends]]",  # ]
  """]
""", '#', "\\"]",
]
env.A = "x"                      # 12
  [backends.env.more]
  "B = C" = 'y'                  # 14

[[ backends ]]
name = "b" # = c
x = { y = "}", z = [ { q = 1 } ] }
[backends."env"]
D = \'\'\'
E = 1
\'\'\'
F = 2                            # 23'''


def test_every_key_has_its_line_whatever_stands_in_texts_and_comments() -> None:
    tomllib.loads(TEXT.replace("\n  [backends.env.more]", "\n[other]"))
    lines = Lines(TEXT)
    assert lines.of("title") == 1
    assert lines.of("backends", 0) == 5
    assert lines.of("backends", 0, "name") == 6
    assert lines.of("backends", 0, "args") == 7
    assert lines.of("backends", 0, "env", "A") == 12
    assert lines.of("backends", 0, "env", "more", "B = C") == 14
    assert lines.of("backends", 1) == 16
    assert lines.of("backends", 1, "x", "z") == 18
    assert lines.of("backends", 1, "env") == 19
    assert lines.of("backends", 1, "env", "F") == 23
    assert lines.of("backends", 1, "env", "none") == 19


def test_lists_in_lists_open_no_table() -> None:
    lines = Lines('[a]\nx = [\n  ["b"],\n  { y = 1 },\n]\nz = 1\n')
    assert (lines.of("a", "x"), lines.of("a", "z"), lines.of("b")) == (2, 6, None)


def test_what_stands_nowhere_has_no_line() -> None:
    assert Lines("").of("backends", 0) is None
    assert Lines("a = 1").of("b") is None


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=30), max_size=6))
def test_no_text_moves_the_line_of_what_follows(texts: list[str]) -> None:
    shown = [text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "\\r") for text in texts]
    shown = ["".join(c if c >= " " or c in "\n\t" else f"\\u{ord(c):04x}" for c in text) for text in shown]
    file = (
        "".join(f'k{n} = """{text}""" # """\n' for n, text in enumerate(shown)).replace("\x7f", "\\u007f")
        + "last = 1\n"
    )
    assert "last" in tomllib.loads(file)
    assert Lines(file).of("last") == file.count("\n")
