from __future__ import annotations

from pathlib import Path

import pytest

from agora.config.access import OWN, AccessTable
from agora.config.load import load_settings
from agora.errors import ConfigError, UnknownKey


def tables(home: Path, text: str) -> tuple[AccessTable, ...]:
    (home / "agora.toml").write_text(text, encoding="utf-8")
    return load_settings({}, {"AGORA_HOME": str(home)}).settings.access


def test_without_tables_there_are_none(tmp_path: Path) -> None:
    assert tables(tmp_path, "agent = 'x'\n") == ()


def test_a_table_is_read_with_its_names_in_one_form_and_its_highest_right(tmp_path: Path) -> None:
    text = """\
[log]
level = "debug"

[[access]]
local = true
namespaces = "*"
rights = "admin"

[[access]]
tokens = ["ci", "web-1"]
namespaces = ["{own}", " Shared ", "Team_*", "acme/*", "team-*"]
rights = ["read", "write"]
"""
    first, second = tables(tmp_path, text)
    assert first == AccessTable(("*",), "admin", local=True)
    assert second == AccessTable((OWN, "shared", "team-*", "acme/*"), "write", tokens=("ci", "web-1"))
    assert (first.place, second.place) == ("agora.toml:4", "agora.toml:9")


def test_tables_are_the_same_wherever_they_stand(tmp_path: Path) -> None:
    text = "[[access]]\nany = true\nnamespaces = 'a'\nrights = 'read'\n"
    assert tables(tmp_path, text) == tables(tmp_path, f"# moved\n\n{text}")


def test_names_of_backends_are_in_lower_case_and_may_be_patterns(tmp_path: Path) -> None:
    text = "[[access]]\nany = true\nnamespaces = 'a'\nrights = 'read'\nbackends = ['GitHub', 'dev-*']\n"
    (only,) = tables(tmp_path, text)
    assert only.backends == ("github", "dev-*")


GOOD = {"any": "true", "namespaces": '["a"]', "rights": '["read"]'}


def written(**lines: str) -> str:
    return "agent = 'x'\n[[access]]\n" + "".join(f"{key} = {value}\n" for key, value in (GOOD | lines).items() if value)


@pytest.mark.parametrize(
    ("changed", "line", "words", "hint"),
    [
        ({"token": '"ci"'}, 6, "unknown key 'token' of access[1]", "Did you mean tokens?"),
        ({"right": '"read"'}, 6, "unknown key 'right'", "Did you mean rights?"),
        ({"colour": "1"}, 6, "unknown key 'colour'", "A table holds tokens, clients"),
        ({"rights": '"reed"'}, 5, "access[1].rights cannot hold 'reed'", "Did you mean read?"),
        ({"rights": '["read", "zzz"]'}, 5, "cannot hold 'zzz'", "each holds those before it"),
        ({"rights": "[]"}, 5, "access[1].rights is empty", ""),
        ({"rights": ""}, 2, "says nothing of `rights`", ""),
        ({"backends": '["a b"]'}, 6, "access[1].backends cannot hold 'a b'", ""),
        ({"backends": "[]"}, 6, "access[1].backends is empty", ""),
        ({"namespaces": ""}, 2, "says nothing of `namespaces`", ""),
        ({"namespaces": "3"}, 4, "cannot be 3", ""),
        ({"namespaces": '["a", 3]'}, 4, "it is a text or a list of texts", ""),
        ({"namespaces": '["a//b"]'}, 4, "has two in a row", "owner/repo"),
        ({"namespaces": '["a b"]'}, 4, "may not contain ' '", ""),
        ({"namespaces": '["own"]'}, 4, "written in braces", "Write {own}."),
        ({"namespaces": '["a\N{CYRILLIC LETTER MULTIOCULAR O}b"]'}, 4, "may not contain", ""),
        ({"any": '"yes"'}, 3, "it is true or false", ""),
        ({"any": ""}, 2, "says for nobody", ""),
        ({"any": "false"}, 2, "says for nobody", ""),
        ({"tokens": '["c i"]'}, 6, "a token's name has letters", ""),
        ({"clients": '[" "]'}, 6, "a name has 1 to 128 characters", ""),
        ({"any": "", "clients": '["codex"]'}, 2, "gives anybody anything", "without `clients`"),
    ],
)
def test_a_mistake_is_told_with_its_line(
    tmp_path: Path, changed: dict[str, str], line: int, words: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        tables(tmp_path, written(**changed))
    assert caught.value.message.startswith(f"{tmp_path / 'agora.toml'}:{line}: ")
    assert words in caught.value.message
    assert hint in caught.value.hint
    assert isinstance(caught.value, UnknownKey) is ("unknown key" in words)


def test_one_table_with_single_brackets_is_told_how_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="list of tables") as caught:
        tables(tmp_path, "[access]\nany = true\n")
    assert "[[access]]" in caught.value.hint


def test_a_word_that_is_nearly_the_tables_name_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnknownKey) as caught:
        tables(tmp_path, "[[acces]]\nany = true\n")
    assert caught.value.hint == "Did you mean access?"


def test_a_table_does_not_move_the_line_of_another_setting(tmp_path: Path) -> None:
    text = "[store]\n[[access]]\nany = true\nnamespaces = '*'\nrights = 'read'\nreaders = 1\n"
    with pytest.raises(UnknownKey, match=r"agora\.toml:6: unknown key 'readers' of access\[1\]"):
        tables(tmp_path, text)


def test_no_variable_of_the_environment_makes_a_table(tmp_path: Path) -> None:
    with pytest.raises(UnknownKey, match="AGORA_ACCESS"):
        load_settings({}, {"AGORA_HOME": str(tmp_path), "AGORA_ACCESS": "*"})
