"""Which project a call belongs to, and that a caller sees nothing else by any path."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client
from mcp_types import INTERNAL_ERROR, ErrorData, ListRootsResult
from tests.protocol.bench import Bench

from agora.protocol.context import NAMED, Connection
from agora.protocol.roots import folder

pytestmark = pytest.mark.anyio


def project(folder: Path, remote: str) -> Path:
    """A git folder with a remote, made without git."""
    (folder / ".git" / "objects").mkdir(parents=True)
    (folder / ".git" / "refs").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    config = f'[core]\n\trepositoryformatversion = 0\n[remote "origin"]\n\turl = {remote}\n'
    (folder / ".git" / "config").write_text(config, encoding="utf-8")
    return folder


async def saved_by(bench: Bench, client: Client, content: str, **given: Any) -> str:
    return str((await bench.ok(client, "agora_save", content=content, **given))["id"])


async def test_the_project_of_the_folder_takes_the_notes(bench: Bench, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", "git@example.org:Acme/Web_Shop.git")
    (shop / "src").mkdir()
    connection = bench.connection(None, folder=shop / "src")
    async with bench.client(connection=connection) as client:
        saved = await bench.ok(client, "agora_save", content="here")
        assert saved["namespace"] == "acme/web-shop"
        assert saved["namespace_rule"] == "git remote origin"


async def test_a_connection_without_any_folder_uses_default(bench: Bench) -> None:
    async with bench.client(connection=bench.connection(None)) as client:
        status = await bench.ok(client, "agora_status")
        assert (status["namespace"], status["namespace_rule"]) == ("default", "no project folder is known")


async def test_whoever_makes_up_names_costs_no_other_call_more_and_keeps_what_was_named_last(bench: Bench) -> None:
    connection = bench.connection("acme/shop")
    for number in range(NAMED + 500):
        connection.caller("tester", namespace=f"made-up-{number}")
        connection.caller("tester", namespace="kept")
    visible = connection.caller("tester").scope.visible()
    assert len(visible) == NAMED + 2
    assert {"acme/shop", "shared", "kept", f"made-up-{NAMED + 499}"} <= set(visible)
    assert "made-up-0" not in visible
    assert set(connection.listener().scope.visible()) == set(visible)
    async with bench.client(connection=connection) as client:
        public_id = await saved_by(bench, client, "here")
        assert (await bench.ok(client, "agora_get", ids=[public_id]))["notes"]


async def test_an_argument_beats_the_project_and_holds_for_one_call(bench: Bench) -> None:
    async with bench.client("acme/shop") as client:
        saved = await bench.ok(client, "agora_save", content="elsewhere", namespace=" Acme/Back_Office ")
        assert (saved["namespace"], saved["namespace_rule"]) == ("acme/back-office", "argument")
        found = await bench.ok(client, "agora_query", query="elsewhere")
        assert (found["namespace"], found["results"]) == ("acme/shop", [])
        found = await bench.ok(client, "agora_query", query="elsewhere", namespace="acme/back-office")
        assert found["namespaces"] == ["acme/back-office"]
        assert [hit["namespace"] for hit in found["results"]] == ["acme/back-office"]


async def test_every_project_sees_what_is_shared(bench: Bench) -> None:
    async with bench.client("acme/shop") as one, bench.client("other/tool") as two:
        note = await saved_by(bench, one, "we deploy on fridays", namespace="shared")
        (hit,) = (await bench.ok(two, "agora_query", query="fridays"))["results"]
        assert (hit["id"], hit["namespace"]) == (note, "shared")
        only = await bench.ok(two, "agora_query", query="fridays", namespace="other/tool")
        assert only["results"] == []


async def test_another_project_sees_nothing_by_any_path(bench: Bench, mode: str) -> None:
    text = "the vault opens at nine"
    async with bench.client("acme/vault", mode=mode) as one, bench.client("other/tool", mode=mode) as two:
        secret = await saved_by(bench, one, text, agent="keeper", tags=["vault"], key="door")
        gone = await saved_by(bench, one, "an old door")
        await bench.ok(one, "agora_forget", ids=[gone], dry_run=False)

        for wanted in ("hybrid", "lexical", "semantic"):
            assert (await bench.ok(two, "agora_query", query=text, mode=wanted))["results"] == []
        found = await bench.ok(two, "agora_query", query=text, tags=["vault"], agents=["keeper"], top_k=50)
        assert (found["results"], found["omitted"]) == ([], 0)
        got = await bench.ok(two, "agora_get", ids=[secret, gone])
        assert (got["notes"], got["forgotten"], got["unknown"]) == ([], [], [secret, gone])
        for given in ({"ids": [secret, gone]}, {"tags": ["vault"]}, {"agent": "keeper"}, {"before": "now"}):
            for dry_run in (True, False):
                done = await bench.ok(two, "agora_forget", dry_run=dry_run, **given)
                assert (done["count"], done["notes"], done["already_forgotten"]) == (0, [], [])
                assert done["kept_for_other_savers"] == 0
        assert (await bench.refused(two, "agora_restore", ids=[secret, gone]))["code"] == "note_not_found"
        status = await bench.ok(two, "agora_status")
        assert (status["notes"]["rows"], status["agents"]) == (0, {})
        assert "acme/vault" not in str(status)
        assert "keeper" not in str(status)

        mine = await bench.ok(two, "agora_save", content=text, key="door")
        assert mine["status"] == "created"
        assert mine["related"] == []
        assert secret not in str(mine)
        near = await bench.ok(two, "agora_save", content="the vault opens at  nine")
        assert [each["id"] for each in near["related"]] == [mine["id"]]

        (still,) = (await bench.ok(one, "agora_get", ids=[secret]))["notes"]
        assert "also_saved_by" not in still
        assert still["content"] == text


async def test_a_namespace_that_a_call_named_stays_visible_on_that_connection_alone(bench: Bench) -> None:
    async with bench.client("a/a") as one, bench.client("b/b") as two, bench.client("c/c") as three:
        note = await saved_by(bench, one, "in a")
        assert (await bench.ok(two, "agora_get", ids=[note]))["unknown"] == [note]
        await bench.ok(two, "agora_query", query="anything", namespace="a/a")
        assert [each["id"] for each in (await bench.ok(two, "agora_get", ids=[note]))["notes"]] == [note]
        assert "a/a" in (await bench.ok(two, "agora_status"))["namespaces"]
        # Visible by id, but a query still searches the project and what is shared.
        assert (await bench.ok(two, "agora_query", query="in a"))["results"] == []
        assert (await bench.ok(three, "agora_get", ids=[note]))["unknown"] == [note]


async def test_conditions_forget_in_the_project_alone_and_ids_wherever_they_are_visible(bench: Bench) -> None:
    async with bench.client("acme/shop") as client:
        mine = await saved_by(bench, client, "mine", tags=["t"])
        shared = await saved_by(bench, client, "shared", tags=["t"], namespace="shared")
        assert [n["id"] for n in (await bench.ok(client, "agora_forget", tags=["t"]))["notes"]] == [mine]
        named = await bench.ok(client, "agora_forget", tags=["t"], namespace="shared")
        assert [note["id"] for note in named["notes"]] == [shared]
        both = await bench.ok(client, "agora_forget", ids=[mine, shared], dry_run=False)
        assert both["count"] == 2
        assert (await bench.ok(client, "agora_restore", ids=[shared]))["restored"] == [shared]


class AnyRoots(ListRootsResult):
    """As clients answer that know of more than files."""

    roots: list[dict[str, str]]  # type: ignore[assignment]


class Rooted:
    """What a client says its roots are, and how often it was asked."""

    def __init__(self, *uris: str, after: float = 0.0) -> None:
        self.uris = uris
        self.after = after
        self.asked = 0

    async def __call__(self, _context: object) -> ListRootsResult | ErrorData:
        self.asked += 1
        await anyio.sleep(self.after)
        if not self.uris:
            return ErrorData(code=INTERNAL_ERROR, message="no")
        return AnyRoots(roots=[{"uri": uri} for uri in self.uris])


class SlowToFind(Connection):
    """On a file system that takes its time."""

    entered = threading.Event()

    def root(self, folder: Path) -> None:
        self.entered.set()
        threading.Event().wait(0.3)
        super().root(folder)


async def namespace_of(bench: Bench, client: Client) -> tuple[str, str]:
    status = await bench.ok(client, "agora_status")
    return status["namespace"], status["namespace_rule"]


async def test_a_root_of_the_client_beats_the_folder_of_the_process(bench: Bench, tmp_path: Path) -> None:
    shop = project(tmp_path / "my shop %41", "https://example.org/acme/shop")
    rooted = Rooted("vscode-vfs://github/acme/other", "file:///nowhere%00", shop.as_uri())
    connection = bench.connection(None, folder=tmp_path)
    async with bench.client(connection=connection, mode="legacy", list_roots_callback=rooted) as client:
        assert await namespace_of(bench, client) == ("acme/shop", "client root, git remote origin")
        assert await namespace_of(bench, client) == ("acme/shop", "client root, git remote origin")
    assert rooted.asked == 1


async def test_a_configured_namespace_beats_a_root(bench: Bench, tmp_path: Path) -> None:
    rooted = Rooted(tmp_path.as_uri())
    async with bench.client("fixed/one", mode="legacy", list_roots_callback=rooted) as client:
        assert await namespace_of(bench, client) == ("fixed/one", "setting namespace.default")


async def test_calls_at_the_same_time_all_wait_for_the_roots(bench: Bench, tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", "https://example.org/acme/shop")
    connection = SlowToFind(at_ms=0, folder=tmp_path)
    names = set()
    rooted = Rooted(shop.as_uri(), after=0.3)
    async with bench.client(connection=connection, mode="legacy", list_roots_callback=rooted) as client:

        async def save(n: int) -> None:
            names.add((await bench.ok(client, "agora_save", content=f"note {n}"))["namespace"])

        async with anyio.create_task_group() as tasks:
            for n in range(5):
                tasks.start_soon(save, n)
            assert await anyio.to_thread.run_sync(connection.entered.wait, 5)
            tasks.start_soon(save, 5)
    assert names == {"acme/shop"}
    assert rooted.asked == 1


async def test_a_client_that_never_tells_its_roots_costs_a_second_once(bench: Bench, tmp_path: Path) -> None:
    rooted = Rooted(tmp_path.as_uri(), after=3600)
    connection = bench.connection(None, folder=tmp_path / "here")
    async with bench.client(connection=connection, mode="legacy", list_roots_callback=rooted) as client:
        began = anyio.current_time()
        name, rule = await namespace_of(bench, client)
        assert 0.9 < anyio.current_time() - began < 2
        assert name.startswith("here-")
        assert rule == "folder"
        began = anyio.current_time()
        assert await namespace_of(bench, client) == (name, rule)
        assert anyio.current_time() - began < 0.5
    assert ("warning", "client declares roots but does not answer", {"seconds": 1.0}) in bench.log.heard


@pytest.mark.parametrize("uris", [(), ("untitled:new",), ("file://server/share",), ("not a uri at all",)])
async def test_roots_that_are_no_folders_leave_the_folder_of_the_process(
    bench: Bench, tmp_path: Path, uris: tuple[str, ...]
) -> None:
    connection = bench.connection(None, folder=tmp_path / "here")
    rooted = Rooted(*uris)
    async with bench.client(connection=connection, mode="legacy", list_roots_callback=rooted) as client:
        name, rule = await namespace_of(bench, client)
        assert (name.startswith("here-"), rule) == (True, "folder")


async def test_the_stateless_era_is_not_asked_for_roots(bench: Bench, tmp_path: Path) -> None:
    rooted = Rooted(tmp_path.as_uri())
    async with bench.client(connection=bench.connection(None), mode="auto", list_roots_callback=rooted) as client:
        assert (await namespace_of(bench, client))[0] == "default"
    assert rooted.asked == 0


async def test_a_path_in_a_uri_is_decoded_once(tmp_path: Path) -> None:
    odd = tmp_path / "100%41 ü"
    assert folder(odd.as_uri()) == odd
    assert folder("file://localhost" + odd.as_uri().removeprefix("file://")) == odd
    assert folder("file://[broken") is None
