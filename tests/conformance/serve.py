"""A server of Agora with the fixtures of the conformance suite beside its own tools: `serve.py alone|shared HOME`.

Everything that Agora does goes on through its own layers: HTTP with its guards, the peers, the runner, the store. The
fixtures are put in front of its handlers here, by the SDK's public means; no option of Agora's brings them in.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.subscriptions import PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from tests.conformance.fixture_tools import PNG, TOOLS, Context, elicitation, embedded, needs, said, tool

from agora.app.agora import Agora
from agora.config.load import load_settings
from agora.daemon import control
from agora.daemon.hello import Hello
from agora.daemon.lock import take
from agora.daemon.place import listen as listen_here
from agora.daemon.place import run_folder
from agora.daemon.server import SharedServer, Terms, find_peer, run_server
from agora.protocol.lifecycle import Lifecycle, State
from agora.protocol.peer import FindPeer, Peer
from agora.protocol.server import make_server
from agora.shim.places import LOCK
from agora.transport.address import listen
from agora.transport.http import HttpOptions, Observed, http_app, run_http, serve_http
from agora.transport.metrics import Metrics
from agora.transport.sessions import Sessions

RESOURCES: dict[str, types.TextResourceContents | types.BlobResourceContents] = {
    "test://static-text": types.TextResourceContents(
        uri="test://static-text", mime_type="text/plain", text="This is the content of the static text resource."
    ),
    "test://static-binary": types.BlobResourceContents(uri="test://static-binary", mime_type="image/png", blob=PNG),
    "test://watched-resource": types.TextResourceContents(
        uri="test://watched-resource", mime_type="text/plain", text="Watched resource content"
    ),
}


class Events(EventStore):
    """Everything that was sent on each stream, so that a client that lost it can have the rest."""

    def __init__(self) -> None:
        self._sent: list[tuple[str, types.JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        """Keep one message; its number is its id."""
        self._sent.append((stream_id, message))
        return str(len(self._sent))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send what came after that one on the same stream."""
        last = int(last_event_id)
        if not 0 < last <= len(self._sent):
            return None
        stream = self._sent[last - 1][0]
        for number, (of, message) in enumerate(self._sent[last:], last + 1):
            if of == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


class Fixtures:
    """Puts the fixtures in front of a server's own handlers."""

    def __init__(self, server: Server[Any], find: FindPeer) -> None:
        self._find = find
        self._own: dict[str, Callable[[Context, Any], Awaitable[Any]]] = {}
        put: tuple[tuple[str, type[Any], Callable[[Context, Any], Awaitable[Any]]], ...] = (
            ("tools/list", types.PaginatedRequestParams, self.list_tools),
            ("tools/call", types.CallToolRequestParams, self.call),
            ("resources/list", types.PaginatedRequestParams, self.list_resources),
            ("resources/templates/list", types.PaginatedRequestParams, self.templates),
            ("resources/read", types.ReadResourceRequestParams, self.read),
            ("resources/subscribe", types.SubscribeRequestParams, self.subscribe),
            ("prompts/list", types.PaginatedRequestParams, self.list_prompts),
            ("prompts/get", types.GetPromptRequestParams, self.get_prompt),
            ("completion/complete", types.CompleteRequestParams, self.complete),
        )
        for method, params, handler in put:
            entry = server.get_request_handler(method)
            assert entry is not None, method
            self._own[method] = entry.handler
            server.add_request_handler(method, params, handler)
        own_schema = server.get_tool_input_schema
        assert own_schema is not None
        server.get_tool_input_schema = lambda name: TOOLS[name][0].input_schema if name in TOOLS else own_schema(name)
        tool("test_trigger_tool_change")(self.trigger_tools)
        tool("test_trigger_prompt_change")(self.trigger_prompts)

    async def list_tools(self, ctx: Context, params: Any) -> types.ListToolsResult:
        """Agora's tools and the fixtures."""
        own = await self._own["tools/list"](ctx, params)
        return types.ListToolsResult(tools=[*own.tools, *(listed for listed, _ in TOOLS.values())])

    async def call(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        """A fixture, or a tool of Agora's."""
        if params.name in TOOLS:
            return await TOOLS[params.name][1](ctx, params)
        return await self._own["tools/call"](ctx, params)

    async def list_resources(self, ctx: Context, params: Any) -> types.ListResourcesResult:
        """Agora's resources and the fixtures."""
        own = await self._own["resources/list"](ctx, params)
        mine = [types.Resource(uri=uri, name=uri, mime_type=each.mime_type) for uri, each in RESOURCES.items()]
        return types.ListResourcesResult(resources=[*own.resources, *mine], next_cursor=own.next_cursor)

    async def templates(self, ctx: Context, params: Any) -> types.ListResourceTemplatesResult:
        """Agora's templates and the fixture's."""
        own = await self._own["resources/templates/list"](ctx, params)
        mine = types.ResourceTemplate(uri_template="test://template/{id}/data", name="template")
        return types.ListResourceTemplatesResult(resource_templates=[*own.resource_templates, mine])

    async def read(self, ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        """A fixture, or a resource of Agora's."""
        uri = str(params.uri)
        if uri in RESOURCES:
            return types.ReadResourceResult(contents=[RESOURCES[uri]])
        if uri.startswith("test://template/") and uri.endswith("/data"):
            found = uri.removeprefix("test://template/").removesuffix("/data")
            text = f'{{"id": "{found}", "templateTest": true, "data": "Data for ID: {found}"}}'
            contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=text)
            return types.ReadResourceResult(contents=[contents])
        return await self._own["resources/read"](ctx, params)

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> Any:
        """A fixture may be subscribed to; it never changes."""
        if str(params.uri) in RESOURCES:
            return types.EmptyResult()
        return await self._own["resources/subscribe"](ctx, params)

    async def list_prompts(self, ctx: Context, params: Any) -> types.ListPromptsResult:
        """Agora's prompts and the fixtures."""
        own = await self._own["prompts/list"](ctx, params)

        def listed(name: str, *arguments: str) -> types.Prompt:
            given = [types.PromptArgument(name=each, description=each, required=True) for each in arguments]
            return types.Prompt(name=name, description=name, arguments=given)

        mine = [
            listed("test_simple_prompt"),
            listed("test_prompt_with_arguments", "arg1", "arg2"),
            listed("test_prompt_with_embedded_resource", "resourceUri"),
            listed("test_prompt_with_image"),
            listed("test_input_required_result_prompt"),
        ]
        return types.ListPromptsResult(prompts=[*own.prompts, *mine])

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> Any:  # noqa: PLR0911 - one a prompt
        """A fixture, or a prompt of Agora's."""
        given = params.arguments or {}
        match params.name:
            case "test_simple_prompt":
                return _prompt(_text("This is a simple prompt for testing."))
            case "test_prompt_with_arguments":
                return _prompt(_text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))
            case "test_prompt_with_embedded_resource":
                found = embedded(given["resourceUri"], "Embedded resource content for testing.")
                return _prompt(found, _text("Please process the embedded resource above."))
            case "test_prompt_with_image":
                image = types.ImageContent(type="image", data=PNG, mime_type="image/png")
                return _prompt(image, _text("Please analyze the image above."))
            case "test_input_required_result_prompt":
                answer = (params.input_responses or {}).get("user_context")
                if isinstance(answer, types.ElicitResult):
                    return _prompt(_text(f"Use this context: {(answer.content or {}).get('context')}"))
                schema = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
                return needs({"user_context": elicitation("What context should the prompt use?", schema)})
        return await self._own["prompts/get"](ctx, params)

    async def complete(self, ctx: Context, params: types.CompleteRequestParams) -> Any:
        """Nothing for a fixture, or what Agora completes."""
        name = params.ref.name if isinstance(params.ref, types.PromptReference) else params.ref.uri
        if name.startswith("test"):
            return types.CompleteResult(completion=types.Completion(values=[], total=0, has_more=False))
        return await self._own["completion/complete"](ctx, params)

    async def trigger_tools(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        """Say that the tools are others."""
        del params
        await self._publish(ctx, ToolsListChanged())
        return said("tool list changed")

    async def trigger_prompts(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        """Say that the prompts are others."""
        del params
        await self._publish(ctx, PromptsListChanged())
        return said("prompt list changed")

    async def _publish(self, ctx: Context, event: Any) -> None:
        subscriptions = self._find(ctx).subscriptions
        if subscriptions is None:
            raise MCPError(code=types.INTERNAL_ERROR, message="nobody watches")
        await subscriptions._bus.publish(event)


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _prompt(*contents: Any) -> types.GetPromptResult:
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=each) for each in contents])


class WithFixtures:
    """Agora and the fixtures at one address."""

    def __init__(self, agora: Agora) -> None:
        self._listener = listen("127.0.0.1:0")
        self._options = HttpOptions(events=Events(), retry_ms=100)

        def peer(_: object) -> Peer:
            lifecycle = Lifecycle(agora.log, "http")
            lifecycle.move(State.LISTENING)
            return Peer(agora.connection(lifecycle=lifecycle), agora.log)

        sessions = Sessions(peer, 60)
        server = make_server(agora.services(), sessions.find, agora.log)
        Fixtures(server, sessions.find)
        server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="agora"))
        observed = Observed(Metrics(lambda: len(sessions)))
        self._app = http_app(server, self._listener, None, sessions, self._options, observed)

    @property
    def url(self) -> str:
        """What the suite is given."""
        return self._listener.url

    @property
    def address(self) -> str:
        """Host and port."""
        return self._listener.authority

    async def serve(self, stop: anyio.Event, on_ready: Callable[[], None]) -> None:
        """Serve beside the sessions of a shared server."""
        await serve_http(self._app, self._listener, stop, on_ready=on_ready, options=self._options)

    def run(self, on_ready: Callable[[], None], on_stop: Callable[[], None]) -> int:
        """Serve by this process alone."""
        return run_http(self._app, self._listener, on_ready=on_ready, on_stop=on_stop, options=self._options)


def alone(agora: Agora) -> int:
    """Serve until a signal ends it."""
    served = WithFixtures(agora)

    def on_ready() -> None:
        print(f"listening on {served.url}", flush=True)
        agora.encoder.warm_up()

    return served.run(on_ready, agora.close)


def shared(agora: Agora, home: Path) -> int:
    """Be a shared server, which serves the fixtures over HTTP for a process that asks for that, until a signal."""
    folder = run_folder(home)
    lock = take(folder / LOCK)

    def open_http(_address: str, _authenticate: bool) -> WithFixtures:
        return WithFixtures(agora)

    def open_peer(_: Hello) -> Peer:
        return Peer(agora.connection(lifecycle=Lifecycle(agora.log, "shared")), agora.log)

    terms = Terms(
        admit=lambda _: [],
        open_peer=open_peer,
        safe=(),
        idle_seconds=600,
        drain_seconds=1,
        line_bytes=1 << 24,
        open_http=open_http,
    )
    server = SharedServer(make_server(agora.services(), find_peer, agora.log), listen_here(home), lock, terms)

    def ask() -> None:
        attached = control.attach(home, {}, "127.0.0.1:0", authenticate=False)
        assert attached is not None
        print(f"listening on {attached.url}", flush=True)
        attached.wait()

    def on_ready() -> None:
        agora.encoder.warm_up()
        threading.Thread(target=ask, daemon=True).start()

    return run_server(server, on_ready=on_ready, on_stop=agora.close, terms=terms)


def main(way: str, home: Path) -> int:
    """Serve in that way until a signal ends it."""
    agora = Agora(load_settings({"home": str(home)}))
    return alone(agora) if way == "alone" else shared(agora, home)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
