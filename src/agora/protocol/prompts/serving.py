"""`prompts/*` on the wire."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from agora.protocol.prompts.prompt import Prompt
from agora.protocol.prompts.prompts import Prompts
from agora.protocol.resources.serving import only_page
from agora.protocol.running import Runner

Context = ServerRequestContext[Any, Any]


class PromptHandlers:
    """Answers what clients ask of prompts."""

    def __init__(self, prompts: Prompts, runner: Runner) -> None:
        self._prompts = prompts
        self._runner = runner

    async def list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        """Answer `prompts/list`."""
        only_page(params)
        found = await self._runner.read(ctx, "prompts/list", lambda _: self._prompts.listed())
        return types.ListPromptsResult(prompts=[_listed(prompt) for prompt in found])

    async def get(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """Answer `prompts/get`."""
        name, given = params.name, params.arguments or {}
        found = await self._runner.read(ctx, "prompts/get", lambda calling: self._prompts.render(name, given, calling))
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=found.text))
        return types.GetPromptResult(description=found.description, messages=[message])


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
