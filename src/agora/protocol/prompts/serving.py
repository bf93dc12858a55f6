"""`prompts/*` on the wire."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from agora.protocol.context import Calling
from agora.protocol.offered import OfferedByOthers
from agora.protocol.prompts.prompt import Prompt
from agora.protocol.prompts.prompts import Prompts
from agora.protocol.resources.serving import only_page
from agora.protocol.running import Runner

Context = ServerRequestContext[Any, Any]


class PromptHandlers:
    """Answers what clients ask of prompts."""

    def __init__(self, prompts: Prompts, others: OfferedByOthers, runner: Runner) -> None:
        self._others = others
        self._prompts = prompts
        self._runner = runner

    async def list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        """Answer `prompts/list`."""
        only_page(params)
        peer = self._runner.find(ctx)
        waits = bool(peer.connection.expose)
        found, owners = await self._runner.read(ctx, "prompts/list", self._every, waits=waits)
        if waits:
            peer.prompts = owners
        return types.ListPromptsResult(prompts=[*found])

    async def get(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """Answer `prompts/get`."""
        name, given, peer = params.name, params.arguments or {}, self._runner.find(ctx)
        # Those that the client was shown; of one that was shown none yet, those that it would be.
        shown = peer.prompts

        def borrowed(calling: Calling) -> types.GetPromptResult | None:
            owner = (self._every(calling)[1] if shown is None else shown).get(name)
            return None if owner is None else self._others.prompt(name, owner, given, calling)

        if peer.connection.expose and (shown is None or name in shown):
            theirs = await self._runner.read(ctx, "prompts/get", borrowed, waits=True)
            if theirs is not None:
                return theirs
        found = await self._runner.read(ctx, "prompts/get", lambda calling: self._prompts.render(name, given, calling))
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=found.text))
        return types.GetPromptResult(description=found.description, messages=[message])

    def _every(self, calling: Calling) -> tuple[tuple[types.Prompt, ...], dict[str, tuple[str, str]]]:
        own = tuple(_listed(prompt) for prompt in self._prompts.listed())
        theirs, owners = self._others.prompts(calling, {prompt.name for prompt in own})
        return (*own, *theirs), owners


def _listed(prompt: Prompt) -> types.Prompt:
    return types.Prompt(
        name=prompt.name,
        title=prompt.title,
        description=prompt.description,
        arguments=[
            types.PromptArgument(
                name=argument.name,
                description=_described(argument.description, argument.values, argument.default),
                required=argument.required,
            )
            for argument in prompt.arguments
        ],
    )


def _described(description: str, values: tuple[str, ...], default: str | None) -> str:
    """The protocol has no field for allowed values and defaults of a prompt: they are told in words."""
    allowed = f" One of: {', '.join(values)}." if values else ""
    return description + allowed + (f" Default: {default}." if default else "")
