"""`resources/*` and `completion/complete` on the wire."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from agora.protocol.context import Calling
from agora.protocol.offered import OfferedByOthers, owned_by
from agora.protocol.prompts.prompts import Prompts
from agora.protocol.resources.resources import Resources
from agora.protocol.resources.table import MIME, TEMPLATES
from agora.protocol.running import Runner

Context = ServerRequestContext[Any, Any]


class ResourceHandlers:
    """Answers what clients ask of resources."""

    def __init__(self, resources: Resources, prompts: Prompts | None, others: OfferedByOthers, runner: Runner) -> None:
        self._others = others
        self._resources = resources
        self._prompts = prompts
        self._runner = runner

    async def list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """Answer `resources/list`."""
        cursor = params.cursor if params else None

        def listed(calling: Calling) -> tuple[list[types.Resource], str | None]:
            rows, following = self._resources.listed(calling.caller(), cursor, calling.deadline)
            own = [
                types.Resource(uri=row.uri, name=row.name, title=row.title, description=row.description, mime_type=MIME)
                for row in rows
            ]
            return own + (self._others.resources(calling) if cursor is None else []), following

        found, following = await self._runner.read(
            # With others' lists in it, it does little but wait for them.
            ctx,
            "resources/list",
            listed,
            waits=bool(self._runner.find(ctx).connection.expose),
        )
        return types.ListResourcesResult(resources=found, next_cursor=following)

    async def templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Answer `resources/templates/list`."""
        del ctx
        only_page(params)
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=kind.template,
                    name=kind.name,
                    title=kind.title,
                    description=kind.description,
                    mime_type=MIME,
                )
                for kind in TEMPLATES
            ]
        )

    async def read(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Answer `resources/read`."""
        uri = str(params.uri)
        if (owner := owned_by(uri)) is not None:
            return await self._runner.read(
                ctx, "resources/read", lambda calling: self._others.read(owner, calling), waits=True
            )
        text = await self._runner.read(ctx, "resources/read", lambda calling: self._resources.read(uri, calling))
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type=MIME, text=text)],
        )

    async def complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Answer `completion/complete`, for templates and for prompts."""
        ref, argument = params.ref, params.argument
        if isinstance(ref, types.ResourceTemplateReference):
            template = ref.uri
            values, total = await self._runner.read(
                ctx,
                "completion/complete",
                lambda calling: self._resources.complete(
                    template, argument.name, argument.value, calling.caller(), calling.deadline
                ),
            )
        else:
            prompts, name = self._prompts, ref.name
            values = (
                ()
                if prompts is None or name in (self._runner.find(ctx).prompts or ())
                else await self._runner.read(
                    ctx, "completion/complete", lambda _: prompts.complete(name, argument.name, argument.value)
                )
            )
            total = len(values)
        found = types.Completion(values=list(values), total=total, has_more=total > len(values))
        return types.CompleteResult(completion=found)


def only_page(params: types.PaginatedRequestParams | None) -> None:
    """Return if the first page is asked for, of a list that has no other.

    Raises: MCPError -32602.
    """
    if params is not None and params.cursor is not None:
        raise MCPError(code=types.INVALID_PARAMS, message="Unknown cursor: the list has one page")
