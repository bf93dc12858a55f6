from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.config.backends import BackendTable
from agora.errors import AccessDenied, ReadOnlyBackend
from agora.model.backend import ToolDefinition
from agora.router.policy import Verdict, refusal, verdict
from agora.router.verbs import AND, ASKING, EITHER, SHOWING, WRITING, reading, split

OPEN = BackendTable("notes", "stdio", command="notes")
SHUT = dataclasses.replace(OPEN, read_only=True, place="agora.toml:7")
TRUSTED = dataclasses.replace(SHUT, trusted=True)


def tool(name: str, parameters: dict[str, Any] | None = None, **said: object) -> ToolDefinition:
    return ToolDefinition("notes", name, input={"type": "object", "properties": parameters or {}}, annotations=said)


def told(found: Verdict) -> tuple[str, bool, str]:
    return found.access, found.allowed, found.rule


@pytest.mark.parametrize(
    "name",
    [
        "get_file_contents",
        "list-issues",
        "listPullRequests",
        "github__search_issues",
        "jira.getIssue",
        "linear_getIssueById",
        "discord_get_forum_post",
        "amazon_sp_list_catalog_items",
        "GETUsers",
        "get2users",
        "aws___read_documentation",
        "tasks_list",
        "notes_search",
        "get_post",
        "list_open_merge_requests",
        "list_recently_updated_files",
        "get_updates",
        "get_pull_request_reviews",
        "query-docs",
        "read_query",
        "cve_lookup",
        "look_up_word",
        "check_domain_availability",
        "field_count",
        "describe_table",
        "list_databases",
    ],
)
def test_a_name_with_a_reading_verb_and_no_writing_one_reads(name: str) -> None:
    assert told(verdict(tool(name), SHUT)) == ("read", True, "name")


@pytest.mark.parametrize(
    "name",
    [
        "get_or_create",
        "search_and_replace",
        "read_write",
        "fetch_delete",
        "execute_query",
        "run_sql_query",
        "query",
        "sql_query",
        "postgres.query",
        "query_database",
        "graphqlQuery",
        "list_and_purge",
        "reset_count",
        "find_and_kill",
        "describe_and_apply",
        "findOneAndUpdate",
        "get_and_post",
        "post_get",
        "list_archive",
        "search_run",
        "add_to_list",
        "mark_as_read",
        "setCount",
        "get_set",
        "listThenDeleteAll",
        "bulkdelete_list",
        "get_deleteall",
        "deletes_list",
        "deleting_list",
        "DELETE_list",
        "DeLeTe_list",
        "check_out_status",
        "check_off_todo_status",
        "uncheck_list",
        "flutter_pub_get",
        "getweather",
        "weather",
        "playlist",
        "listing",
        "budget",
        "frobnicate",
        "",
        "_",
        "123",
        "get" * 100,
    ],
)
def test_any_other_name_writes(name: str) -> None:
    assert told(verdict(tool(name), SHUT)) == ("write", False, "name")
    assert told(verdict(tool(name), OPEN)) == ("write", True, "name")


@pytest.mark.parametrize("name", ["gеt_file", "ｇｅｔ_file", "get_file\u200b", "g\u200bet_file", "ɡet_file", "get_天"])
def test_a_name_that_only_looks_like_reading_writes(name: str) -> None:
    found = verdict(tool(name), SHUT)
    assert told(found) == ("write", False, "name")
    assert "ASCII" in found.words


@given(
    st.sampled_from(sorted(ASKING | SHOWING)),
    st.sampled_from(sorted(WRITING)),
    st.sampled_from(sorted(AND)),
    st.sampled_from(["_", "-", ".", "/", "2"]),
)
def test_a_verb_that_writes_makes_a_name_writing_wherever_it_stands(
    asks: str, writes: str, joiner: str, by: str
) -> None:
    for parts in ([asks, writes], [writes, asks], [asks, joiner, writes], ["github", asks, "old", writes]):
        assert not reading(by.join(parts)).reads, parts
        assert not reading("".join(part.capitalize() for part in parts)).reads, parts


@given(st.sampled_from(sorted(ASKING)), st.sampled_from(sorted(EITHER - {"new"})), st.sampled_from(sorted(AND)))
def test_what_may_be_a_thing_is_one_only_as_the_object_of_a_verb_that_asks(asks: str, thing: str, joiner: str) -> None:
    assert reading(f"{asks}_{thing}").reads
    assert not reading(f"{thing}_{asks}").reads
    assert not reading(f"{asks}_{joiner}_{thing}").reads


@given(st.text(max_size=300))
def test_every_name_gets_a_verdict_and_none_reads_without_a_reading_verb(name: str) -> None:
    words = set(split(name))
    if verdict(tool(name), SHUT).access == "read":
        assert words & (ASKING | SHOWING | {"look", "check", "query"})
        assert not words & WRITING


def test_no_word_is_on_two_lists() -> None:
    assert not WRITING & EITHER
    assert not (WRITING | EITHER) & (ASKING | SHOWING | {"check", "look", "query"} | AND)


def test_an_annotation_counts_as_reading_only_from_a_trusted_backend() -> None:
    shown = tool("weather", readOnlyHint=True)
    assert told(verdict(shown, SHUT)) == ("write", False, "name")
    assert told(verdict(shown, TRUSTED)) == ("read", True, "annotation")
    assert told(verdict(tool("delete_all", readOnlyHint=True), TRUSTED)) == ("read", True, "annotation")
    assert told(verdict(tool("weather", readOnlyHint=True, destructiveHint=True), TRUSTED))[0] == "write"
    assert told(verdict(tool("weather", readOnlyHint="true"), TRUSTED)) == ("write", False, "name")


def test_a_tool_that_says_that_it_writes_is_believed_whoever_says_so() -> None:
    for backend in (SHUT, TRUSTED):
        assert told(verdict(tool("get_file", readOnlyHint=False), backend)) == ("write", False, "annotation")
        assert told(verdict(tool("get_file", destructiveHint=True), backend)) == ("write", False, "annotation")
    assert told(verdict(tool("get_file", title="x", openWorldHint=True), SHUT)) == ("read", True, "name")


def test_the_operators_word_comes_first_and_deny_before_allow() -> None:
    both = dataclasses.replace(TRUSTED, deny=("get_*",), allow=("*",))
    assert told(verdict(tool("get_file", readOnlyHint=True), both)) == ("read", False, "deny")
    assert told(verdict(tool("delete_file"), both)) == ("write", True, "allow")
    assert told(verdict(tool("delete_file", readOnlyHint=True), both)) == ("read", True, "allow")


def test_allow_lets_a_call_through_but_does_not_make_it_reading() -> None:
    found = verdict(tool("set_volume"), dataclasses.replace(SHUT, allow=("set_volume",)))
    assert told(found) == ("write", True, "allow")
    assert found.in_broadcast
    assert not verdict(tool("set_volume"), OPEN).in_broadcast
    assert verdict(tool("get_volume"), OPEN).in_broadcast
    assert not verdict(tool("get_volume"), dataclasses.replace(OPEN, deny=("*volume",))).in_broadcast


@pytest.mark.parametrize("name", ["delete_file", "Delete_File", "DELETE_FILE", "ｄelete_file", "delete\u200b_file"])
def test_what_is_denied_is_denied_in_every_letter_case_and_form(name: str) -> None:
    assert verdict(tool(name), dataclasses.replace(OPEN, deny=("delete_*",))).rule == "deny"
    assert verdict(tool("delete_file"), dataclasses.replace(OPEN, deny=("Delete_*",))).rule == "deny"


def test_what_is_allowed_must_be_written_exactly() -> None:
    assert verdict(tool("Delete_file"), dataclasses.replace(SHUT, allow=("delete_*",))).allowed is False


@pytest.mark.parametrize(
    ("parameters", "access"),
    [
        ({"action": {"type": "string", "enum": ["search", "delete"]}}, "write"),
        ({"Operation": {"anyOf": [{"enum": ["bulk_update"]}, {"type": "null"}]}}, "write"),
        ({"method": {"const": "POST"}}, "write"),
        ({"sql": {"type": "string"}}, "write"),
        ({"http_method": {"type": "string"}}, "write"),
        ({"http_method": {"enum": ["GET", "HEAD"]}}, "read"),
        ({"action": {"enum": ["search", "list"]}}, "read"),
        ({"method": {"type": "string"}}, "read"),
        ({"sort": {"enum": ["update", "create"]}}, "read"),
        ({"action": {"enum": [1, None, ["delete"]]}, "mode": True, "op": None}, "read"),
    ],
)
def test_a_parameter_that_can_ask_for_a_change_undoes_a_reading_name(parameters: dict[str, Any], access: str) -> None:
    assert verdict(tool("search_notes", parameters), SHUT).access == access


def test_a_schema_that_is_none_harms_nothing() -> None:
    for schema in ({}, {"properties": None}, {"properties": ["sql"]}):
        assert verdict(ToolDefinition("notes", "get_file", input=schema), SHUT).access == "read"


def test_the_refusal_names_the_rule_and_what_the_operator_could_write() -> None:
    shown = tool("weather", readOnlyHint=True)
    error = refusal(shown, SHUT, verdict(shown, SHUT))
    assert isinstance(error, ReadOnlyBackend)
    assert "no word of its name says that it only reads" in error.message
    assert 'allow = ["weather"]' in error.hint
    assert "trusted = true" in error.hint
    assert "agora.toml:7" in error.hint
    assert "trusted" not in refusal(tool("frob"), SHUT, verdict(tool("frob"), SHUT)).hint


def test_the_refusal_of_what_is_denied_names_the_pattern() -> None:
    shut = dataclasses.replace(OPEN, deny=("delete_*",))
    error = refusal(tool("delete_x"), shut, verdict(tool("delete_x"), shut))
    assert type(error) is AccessDenied
    assert "'delete_*'" in error.message
    assert "`deny`" in error.hint
