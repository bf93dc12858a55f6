"""The access tables of the file hold for every session of the shared server, and a changed file for the next one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.processes import RunAgora, Serve
from tests.integration.shared.conftest import server_of

READ_ONLY = '[[access]]\nlocal = true\nnamespaces = ["{own}"]\nrights = "read"\n'
EVERYTHING = '[[access]]\nlocal = true\nnamespaces = "*"\nrights = "admin"\n'


def test_a_session_has_the_rights_of_the_file_and_a_changed_file_changes_them(
    session: Serve, home: Path, run_shared: RunAgora
) -> None:
    home.mkdir(mode=0o700)
    file = home / "agora.toml"
    file.write_text(READ_ONLY, "utf-8")
    # A command of the user is bound by no table.
    run_shared("save", "the port is 8080", "--json")
    first = session()
    assert len(first.call("agora_query", query="the port")["results"]) == 1
    assert first.refused("agora_save", content="mine")["code"] == "namespace_denied"
    assert first.refused("agora_query", query="port", namespace="shared")["code"] == "namespace_denied"
    before = server_of(home)["pid"]
    file.write_text(EVERYTHING, "utf-8")
    second = session()
    assert server_of(home)["pid"] != before, "another table is another configuration"
    for each in (first, second):
        assert each.call("agora_save", content="mine", namespace="shared")["id"]


@pytest.mark.parametrize("named", ["AGORA_AGENT", "AGORA_NAMESPACE_DEFAULT"])
def test_what_a_session_says_of_itself_gives_no_rights_but_in_its_project(
    session: Serve, home: Path, named: str
) -> None:
    home.mkdir(mode=0o700)
    (home / "agora.toml").write_text(READ_ONLY, "utf-8")
    each = session(env={named: "boss"})
    rights = each.call("agora_status")["access"]
    own = each.call("agora_status")["namespace"]
    assert rights["given_by"][0]["namespaces"] == [own]
    assert each.refused("agora_save", content="mine")["code"] == "namespace_denied"


def test_a_session_with_another_file_has_a_server_of_its_own(session: Serve, home: Path, tmp_path: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "agora.toml").write_text(READ_ONLY, "utf-8")
    bound = session()
    other = tmp_path / "other.toml"
    other.write_text(EVERYTHING, "utf-8")
    free = session(env={"AGORA_CONFIG": str(other)})
    assert free.call("agora_status")["server"]["shared"] is False
    # The rules of the shared server are those of its file, whoever else has others.
    assert bound.refused("agora_save", content="mine")["code"] == "namespace_denied"
