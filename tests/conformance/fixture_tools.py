"""The tools that the conformance suite asks for by name, each doing what its scenario needs and no more."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import anyio
import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

Context: TypeAlias = ServerRequestContext[Any, Any]
Params: TypeAlias = types.CallToolRequestParams
Result: TypeAlias = types.CallToolResult | types.InputRequiredResult
Handler: TypeAlias = Callable[[Context, Params], Awaitable[Result]]

TOOLS: dict[str, tuple[types.Tool, Handler]] = {}
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
OK = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def tool(name: str, schema: Mapping[str, Any] | None = None) -> Callable[[Handler], Handler]:
    """Register a handler under a name, with the schema of its arguments."""

    def register(handler: Handler) -> Handler:
        listed = types.Tool(name=name, description=handler.__doc__ or name, input_schema=dict(schema or EMPTY))
        TOOLS[name] = (listed, handler)
        return handler

    return register


def strings(*names: str) -> dict[str, Any]:
    """The schema of arguments that are all required texts."""
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": list(names)}


def said(text: str) -> types.CallToolResult:
    """A result of one text."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def log(ctx: Context, text: str) -> None:
    """Send a log message, where the era and the request allow it."""
    if "info" not in allowed_log_levels(ctx.protocol_version, ctx.meta):
        return
    params = types.LoggingMessageNotificationParams(level="info", data=text)
    await ctx.session.send_notification(
        types.LoggingMessageNotification(params=params), related_request_id=ctx.request_id
    )


@tool("test_simple_text")
async def simple_text(ctx: Context, params: Params) -> Result:
    """One text."""
    return said("This is a simple text response for testing.")


@tool("test_image_content")
async def image(ctx: Context, params: Params) -> Result:
    """One image."""
    return types.CallToolResult(content=[types.ImageContent(type="image", data=PNG, mime_type="image/png")])


@tool("test_audio_content")
async def audio(ctx: Context, params: Params) -> Result:
    """One sound."""
    return types.CallToolResult(content=[types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")])


def embedded(uri: str, text: str, mime: str = "text/plain") -> types.EmbeddedResource:
    """A resource inside a result."""
    return types.EmbeddedResource(
        type="resource", resource=types.TextResourceContents(uri=uri, mime_type=mime, text=text)
    )


@tool("test_embedded_resource")
async def embedded_resource(ctx: Context, params: Params) -> Result:
    """One embedded resource."""
    return types.CallToolResult(content=[embedded("test://embedded-resource", "This is an embedded resource content.")])


@tool("test_multiple_content_types")
async def multiple(ctx: Context, params: Params) -> Result:
    """A text, an image and a resource."""
    return types.CallToolResult(
        content=[
            types.TextContent(type="text", text="Multiple content types test:"),
            types.ImageContent(type="image", data=PNG, mime_type="image/png"),
            embedded("test://mixed-content-resource", '{"test": "data", "value": 123}', "application/json"),
        ]
    )


@tool("test_tool_with_logging")
async def logging(ctx: Context, params: Params) -> Result:
    """Three log messages on the way."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await log(ctx, text)
        await anyio.sleep(0.05)
    return said("done")


@tool("test_logging_tool")
async def one_log(ctx: Context, params: Params) -> Result:
    """One log message, for those who asked for it with the request."""
    await log(ctx, "test_logging_tool ran")
    return said("done")


@tool("test_tool_with_progress")
async def progress(ctx: Context, params: Params) -> Result:
    """Three notes of progress on the way."""
    token = (ctx.meta or {}).get("progress_token")
    for number in (0, 50, 100):
        if token is not None:
            note = types.ProgressNotificationParams(progress_token=token, progress=number, total=100)
            await ctx.session.send_notification(
                types.ProgressNotification(params=note), related_request_id=ctx.request_id
            )
        await anyio.sleep(0.05)
    return said(str(token))


@tool("test_error_handling")
async def error(ctx: Context, params: Params) -> Result:
    """A failure."""
    text = "This tool intentionally returns an error for testing"
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


async def asked(ctx: Context, request: Any, result: type[Any]) -> Any:
    """What the client answers, on the stream of the call itself."""
    from mcp.shared.message import ServerMessageMetadata  # noqa: PLC0415 - needed for this alone

    channel = ServerMessageMetadata(related_request_id=ctx.request_id)
    return await ctx.session.send_request(request, result, metadata=channel)


def elicitation(message: str, schema: Mapping[str, Any]) -> types.ElicitRequest:
    """A question to the user."""
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=dict(schema)))


def sampling(text: str, most: int = 100) -> types.CreateMessageRequest:
    """A question to the client's model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=most))


@tool("test_sampling", strings("prompt"))
async def sample(ctx: Context, params: Params) -> Result:
    """Asks the client's model."""
    found = await asked(ctx, sampling((params.arguments or {})["prompt"]), types.CreateMessageResult)
    return said(f"LLM response: {found.content.text if found.content.type == 'text' else '?'}")


async def elicited(ctx: Context, message: str, schema: Mapping[str, Any], words: str) -> Result:
    """Ask the user and tell what came back."""
    found = await asked(ctx, elicitation(message, schema), types.ElicitResult)
    return said(f"{words}: action={found.action}, content={json.dumps(found.content or {})}")


@tool("test_elicitation", strings("message"))
async def elicit(ctx: Context, params: Params) -> Result:
    """Asks the user."""
    schema = {
        "type": "object",
        "properties": {"response": {"type": "string", "description": "Your response"}},
        "required": ["response"],
    }
    return await elicited(ctx, (params.arguments or {})["message"], schema, "User response")


@tool("test_elicitation_sep1034_defaults")
async def defaults(ctx: Context, params: Params) -> Result:
    """Asks the user, with a default of every kind."""
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        },
    }
    return await elicited(ctx, "Who are you?", schema, "Elicitation completed")


@tool("test_elicitation_sep1330_enums")
async def enums(ctx: Context, params: Params) -> Result:
    """Asks the user to choose, in every form of a choice."""

    def titled(**values: str) -> list[dict[str, str]]:
        return [{"const": name, "title": title} for name, title in values.items()]

    schema = {
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": ["active", "inactive", "pending"]},
            "titledSingle": {"type": "string", "oneOf": titled(low="Low", medium="Medium", high="High")},
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["read", "write", "execute"]}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled(feature="Feature", bug="Bug", docs="Docs")}},
            "legacyEnum": {"type": "string", "enum": ["small", "large"], "enumNames": ["Small", "Large"]},
        },
    }
    return await elicited(ctx, "What shall it be?", schema, "Elicitation completed")


@tool("test_reconnection")
async def reconnection(ctx: Context, params: Params) -> Result:
    """Ends its stream in the middle; the client polls for the rest."""
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
    await anyio.sleep(0.2)
    return said("Reconnection test completed")


@tool("test_missing_capability")
async def missing_capability(ctx: Context, params: Params) -> Result:
    """Needs a client that has a model to ask."""
    declared = ctx.session.client_capabilities
    if declared is None or declared.sampling is None:
        raise MCPError(
            code=types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            message="This tool needs a client with the sampling capability",
            data={"requiredCapabilities": {"sampling": {}}},
        )
    return said("The client has what is needed")


@tool(
    "test_x_mcp_header",
    {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
)
async def mirrored(ctx: Context, params: Params) -> Result:
    """Has an argument that a header repeats."""
    return said(f"region={(params.arguments or {}).get('region', '<none>')}")


def needs(requests: Mapping[str, Any], state: str | None = None) -> types.InputRequiredResult:
    """A result that asks the client for more."""
    return types.InputRequiredResult(input_requests=dict(requests), request_state=state)


def answered(params: Params) -> Mapping[str, Any]:
    """What the client has answered to earlier questions."""
    return params.input_responses or {}


@tool("test_input_required_result_elicitation")
async def required_elicitation(ctx: Context, params: Params) -> Result:
    """Needs a name from the user."""
    answer = answered(params).get("user_name")
    if isinstance(answer, types.ElicitResult):
        return said(f"Hello, {(answer.content or {}).get('name', 'stranger')}!")
    return needs({"user_name": elicitation("What is your name?", NAME)})


@tool("test_streaming_elicitation")
async def streaming_elicitation(ctx: Context, params: Params) -> Result:
    """Needs a name, and asks for it in its result: no request of its own stands on the stream."""
    return await required_elicitation(ctx, params)


@tool("test_input_required_result_sampling")
async def required_sampling(ctx: Context, params: Params) -> Result:
    """Needs an answer of the client's model."""
    answer = answered(params).get("capital_question")
    if isinstance(answer, types.CreateMessageResult):
        return said(f"Model said: {answer.content.text if answer.content.type == 'text' else '?'}")
    return needs({"capital_question": sampling("What is the capital of France?")})


@tool("test_input_required_result_list_roots")
async def required_roots(ctx: Context, params: Params) -> Result:
    """Needs the client's roots."""
    answer = answered(params).get("client_roots")
    if isinstance(answer, types.ListRootsResult):
        return said(f"Client exposed {len(answer.roots)} root(s).")
    return needs({"client_roots": types.ListRootsRequest()})


@tool("test_input_required_result_request_state")
async def required_state(ctx: Context, params: Params) -> Result:
    """Needs a confirmation, and its own state back."""
    if "confirm" in answered(params) and params.request_state == "first-round":
        return said("state-ok: confirmation received")
    return needs({"confirm": elicitation("Please confirm", OK)}, "first-round")


@tool("test_input_required_result_tampered_state")
async def required_tampered(ctx: Context, params: Params) -> Result:
    """Needs a state back that nobody has changed."""
    if params.request_state is None:
        return needs({"confirm": elicitation("Please confirm", OK)}, "first-round")
    return said(f"state-ok: {params.request_state}")


@tool("test_input_required_result_multiple_inputs")
async def required_multiple(ctx: Context, params: Params) -> Result:
    """Needs three things at once."""
    if {"user_name", "greeting", "client_roots"} <= set(answered(params)):
        return said("All inputs received.")
    return needs(
        {
            "user_name": elicitation("What is your name?", NAME),
            "greeting": sampling("Generate a greeting", 50),
            "client_roots": types.ListRootsRequest(),
        },
        "several",
    )


@tool("test_input_required_result_multi_round")
async def required_rounds(ctx: Context, params: Params) -> Result:
    """Needs a name, then a colour."""
    state = json.loads(params.request_state) if params.request_state else {"round": 0}
    first, second = answered(params).get("step1"), answered(params).get("step2")
    if state["round"] == 1 and isinstance(first, types.ElicitResult):
        colour = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
        told = {"round": 2, "name": (first.content or {}).get("name")}
        return needs({"step2": elicitation("Step 2: What is your favorite color?", colour)}, json.dumps(told))
    if state["round"] == 2 and isinstance(second, types.ElicitResult):
        return said(f"{state['name']} likes {(second.content or {}).get('color')}.")
    return needs({"step1": elicitation("Step 1: What is your name?", NAME)}, json.dumps({"round": 1}))


@tool("test_input_required_result_capabilities")
async def required_capabilities(ctx: Context, params: Params) -> Result:
    """Asks only for what the client can give."""
    declared = ctx.session.client_capabilities
    requests: dict[str, Any] = {}
    if declared is not None and declared.sampling is not None:
        requests["sample"] = sampling("Say hello", 50)
    if declared is not None and declared.elicitation is not None:
        requests["ask"] = elicitation("What is your name?", NAME)
    return needs(requests, "gated")


@tool(
    "json_schema_2020_12_tool",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)
async def schema_2020_12(ctx: Context, params: Params) -> Result:
    """Has a schema of every keyword."""
    return said("json_schema_2020_12_tool")


def modern(ctx: Context) -> bool:
    """Whether the request is of the stateless era."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
