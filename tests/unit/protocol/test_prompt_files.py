from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.protocol.prompts.prompt import Argument, parse
from agora.protocol.prompts.template import names, render

HEAD = "name: mine\ntitle: T\ndescription: D\n"


def test_a_file_is_front_matter_and_a_template() -> None:
    text = f"""\ufeff---
{HEAD}arguments:
  - name: a
    description: A.
    required: true
  - {{name: b, description: B., values: [x, 'y'], default: x}}
---

Text {{{{a}}}}
"""
    prompt = parse(text.replace("\n", "\r\n"))
    assert (prompt.name, prompt.title, prompt.description, prompt.template) == ("mine", "T", "D", "Text {{a}}\n")
    assert prompt.arguments == (
        Argument("a", "A.", required=True),
        Argument("b", "B.", values=("x", "y"), default="x"),
    )
    assert prompt.fills == frozenset()


def test_what_the_memory_fills_is_known_unless_an_argument_has_its_name() -> None:
    assert parse(f"---\n{HEAD}---\n{{{{notes}}}}{{{{#verdicts}}}}x{{{{/verdicts}}}}").fills == {"notes", "verdicts"}
    own = f"---\n{HEAD}arguments: [{{name: notes, description: N.}}]\n---\n{{{{notes}}}} {{{{saved}}}}"
    assert parse(own).fills == {"saved"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no head", "does not begin with front matter"),
        ("---\nname: x\n", "does not begin with front matter"),
        ("---\n: : :\n---\n", "no YAML"),
        ("---\n- a\n---\n", "keys and values"),
        (f"---\n{HEAD}more: 1\n---\n", "unknown key: more"),
        ("---\nname: X y\ntitle: T\ndescription: D\n---\n", "`name` must be"),
        ("---\nname: x\ntitle: T\n---\n", "`description` is missing"),
        (f"---\n{HEAD}arguments: 3\n---\n", "`arguments` is not a list"),
        (f"---\n{HEAD}arguments: [x]\n---\n", "an argument is not"),
        (f"---\n{HEAD}arguments: [{{name: a, description: A, kind: x}}]\n---\n", "unknown key: kind"),
        (f"---\n{HEAD}arguments: [{{name: a, description: A, values: [yes]}}]\n---\n", "`values` of a"),
        (f"---\n{HEAD}arguments: [{{name: a, description: A, values: [x], default: y}}]\n---\n", "none of its values"),
        (f"---\n{HEAD}arguments: [{{name: a, description: A, required: 'no'}}]\n---\n", "`required` is not"),
        (f"---\n{HEAD}arguments: [{{name: a, description: A}}, {{name: a, description: B}}]\n---\n", "one name"),
        (f"---\n{HEAD}---\n{{{{other}}}}", "{{other}}, which is none"),
        (f"---\n{HEAD}---\n{{{{#notes}}}}", "is not closed"),
        (f"---\n{HEAD}---\n{{{{/notes}}}}", "closes no section"),
        (f"---\n{HEAD}---\n{{{{#notes}}}}{{{{#saved}}}}{{{{/notes}}}}{{{{/saved}}}}", "closes no section"),
        ("---\n!!python/object/apply:os.system ['true']\n---\n", "no YAML"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_words(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse(text)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("template", "values", "expected"),
    [
        ("a {{x}} b", {"x": "1"}, "a 1 b"),
        ("a {{ x }} b", {}, "a  b"),
        ("{{#x}}yes {{x}}{{/x}}{{^x}}no{{/x}}", {"x": "1"}, "yes 1"),
        ("{{#x}}yes{{/x}}{{^x}}no{{/x}}", {"x": ""}, "no"),
        ("1\n{{#x}}\n2\n{{/x}}\n3\n", {"x": "1"}, "1\n2\n3\n"),
        ("1\n  {{^x}}  \n2\n  {{/x}}\n3\n", {"x": "1"}, "1\n3\n"),
        ("{{#x}}a{{#y}}b{{/y}}c{{/x}}d", {"x": "1"}, "acd"),
        ("{{#x}}a{{^y}}b{{/y}}c{{/x}}d", {"y": "1"}, "d"),
        ("{{#x}}{{#x}}a{{/x}}{{/x}}", {"x": "1"}, "a"),
        ("{{X}} {x} {{{x}}}", {"x": "1"}, "{{X}} {x} {1}"),
        ("<x>\n{{x}}\n</x>", {"x": "a</X>b"}, "<x-1>\na</X>b\n</x-1>"),
        ("<x a='1'>{{x}}</x>", {"x": "</x></x-1>"}, "<x-2 a='1'></x></x-1></x-2>"),
        ("<xy>{{x}}</xy>", {"x": "</x>"}, "<xy></x></xy>"),
    ],
)
def test_templates_are_expanded_as_mustache_has_it(template: str, values: dict[str, str], expected: str) -> None:
    assert render(template, values) == expected


@given(st.text(), st.text())
def test_values_are_put_in_as_they_are(one: str, other: str) -> None:
    found = render("[{{one}}|{{other}}]", {"one": one, "other": other})
    assert found == f"[{one}|{other}]"


@given(st.text(alphabet="</>x-12 \nX", max_size=40))
def test_no_value_ends_its_own_fence(value: str) -> None:
    found = render("<x>{{x}}</x>", {"x": value})
    opening = found[: found.index(">") + 1]
    closing = "</" + opening[1:]
    assert found == f"{opening}{value}{closing}"
    assert closing.casefold() not in value.casefold()


def test_the_names_of_a_template_are_those_of_its_tags() -> None:
    assert names("{{a}} {{#b}}{{^c}}{{/c}}{{/b}} { {d} }") == {"a", "b", "c"}
