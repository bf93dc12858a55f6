"""A changed list of backends needs no new server; another file with other backends is another server's business."""

from __future__ import annotations

from pathlib import Path

from tests.integration.processes import Serve
from tests.integration.shared.conftest import server_of

ONE = '[[backends]]\nname = "one"\ncommand = "made-up-program"\n'
TWO = '[[backends]]\nname = "two"\nurl = "https://example.com/mcp"\nbearer_token = "${NOT_SET_HERE}"\n'


def test_a_changed_list_of_backends_replaces_no_server(session: Serve, home: Path) -> None:
    home.mkdir(mode=0o700)
    file = home / "agora.toml"
    first = session()
    before = server_of(home)["pid"]
    # The file comes into being, and changes; a variable that is not set stops no session.
    for text in (ONE, ONE + TWO, ONE):
        file.write_text(text, "utf-8")
        assert session().call("agora_status")["server"]["shared"] is True
        assert server_of(home)["pid"] == before
    assert first.call("agora_status")["server"]["shared"] is True
    file.write_text(f"[store]\nreaders = 2\n{ONE}", "utf-8")
    session().call("agora_status")
    assert server_of(home)["pid"] != before, "every other setting is another configuration"


def test_a_session_whose_file_has_other_backends_has_a_server_of_its_own(
    session: Serve, home: Path, tmp_path: Path
) -> None:
    home.mkdir(mode=0o700)
    (home / "agora.toml").write_text(ONE, "utf-8")
    shared = session()
    assert shared.call("agora_status")["server"]["shared"] is True
    other = tmp_path / "other.toml"
    other.write_text(TWO, "utf-8")
    free = session(env={"AGORA_CONFIG": str(other)})
    assert free.call("agora_status")["server"]["shared"] is False
    other.write_text(f"# elsewhere\n{ONE}", "utf-8")
    assert session(env={"AGORA_CONFIG": str(other)}).call("agora_status")["server"]["shared"] is True
