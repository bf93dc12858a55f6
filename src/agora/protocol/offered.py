"""Resources and prompts of other servers that a session sees as this one's."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types
from pydantic import ValidationError

from agora.errors import BackendProtocolError, BackendRefused, InvalidInput
from agora.protocol.context import Calling
from agora.protocol.other_servers import OtherServers
from agora.protocol.prompts.prompts import PromptNotFound
from agora.protocol.resources.resources import ResourceNotFound
from agora.protocol.resources.table import DATA
from agora.protocol.tools.exposed import DESCRIPTION, TITLE, block, readable
from agora.router.naming import Owned, table_of
from agora.unseen import shown

META = "agora/from"
"""Member of `_meta` with whose a content is: its backend, and its URI there."""

MOST = 500
"""Resources, and prompts, of one backend that are listed."""

_URI = re.compile(r"agora://backends/([^/?#]+)/([^/?#]+)")
_LONGEST = 2_000
_NOT_THERE = (-32002, -32602)
"""What servers answer for a resource that they do not have."""

_INVALID_PARAMS = -32602


def uri_of(backend: str, uri: str) -> str:
    """The URI under which a client sees a resource of a backend."""
    return f"agora://backends/{quote(backend, safe='')}/{quote(uri, safe='')}"


def owned_by(uri: str) -> Owned | None:
    """The backend and the URI there that a URI of ours stands for; None for any other."""
    found = _URI.fullmatch(uri)
    return None if found is None else (unquote(found[1]), unquote(found[2]))


class OfferedByOthers:
    """Lists and reads them. Blocking: run it in a worker thread."""

    def __init__(self, others: OtherServers) -> None:
        self._others = others

    def resources(self, calling: Calling) -> list[types.Resource]:
        """Their resources, by backend in its own order; nothing of a backend that does not answer soon."""
        found = []
        for backend, rows in self._others.offered("resources", calling).items():
            found += [row for given in rows[:MOST] if (row := _resource(backend, given)) is not None]
        return found

    def read(self, owner: Owned, calling: Calling) -> types.ReadResourceResult:
        """One of their resources, each content with whose it is.

        Raises: ResourceNotFound; PayloadTooLarge; BackendError.
        """
        backend, uri = owner
        if not self._others.is_exposed(backend, calling):
            raise ResourceNotFound(uri_of(*owner))
        try:
            answer = self._others.ask(backend, "resources/read", {"uri": uri}, calling)
        except BackendRefused as error:
            if error.number in _NOT_THERE:
                raise ResourceNotFound(uri_of(*owner)) from error
            raise
        contents = answer.get("contents")
        if not isinstance(contents, list):
            raise BackendProtocolError(backend, "its answer to resources/read has no contents")
        return types.ReadResourceResult(contents=[_content(backend, uri, each) for each in contents])

    def prompts(self, calling: Calling, taken: Collection[str]) -> tuple[list[types.Prompt], dict[str, Owned]]:
        """Their prompts under names that are none of `taken`, and whose each name is."""
        found: dict[Owned, Mapping[str, Any]] = {}
        for backend, rows in self._others.offered("prompts", calling).items():
            for row in rows[:MOST]:
                if isinstance(name := row.get("name"), str) and name:
                    found.setdefault((backend, name), row)
        owners = table_of(found, taken)
        names = {owner: name for name, owner in owners.items()}
        return [_prompt(names[owner], owner[0], row) for owner, row in found.items()], owners

    def prompt(self, name: str, owner: Owned, given: Mapping[str, str], calling: Calling) -> types.GetPromptResult:
        """One of their prompts with its arguments, every text of it marked as that backend's.

        Raises: PromptNotFound; InvalidInput if the backend does not take the arguments; PayloadTooLarge; BackendError.
        """
        backend, there = owner
        if not self._others.is_exposed(backend, calling):
            raise PromptNotFound(f"Unknown prompt: {name}"[:300])
        try:
            answer = self._others.ask(backend, "prompts/get", {"name": there, "arguments": dict(given)}, calling)
        except BackendRefused as error:
            if error.number == _INVALID_PARAMS:
                raise InvalidInput("arguments", error.message, dict(given)) from error
            raise
        messages = answer.get("messages")
        if not isinstance(messages, list):
            raise BackendProtocolError(backend, "its answer to prompts/get has no messages")
        return types.GetPromptResult(
            description=_described(backend, answer.get("description")),
            messages=[_message(backend, each) for each in messages if isinstance(each, Mapping)],
        )


def _resource(backend: str, given: Mapping[str, Any]) -> types.Resource | None:
    uri = given.get("uri")
    if not isinstance(uri, str) or not uri or len(uri) > _LONGEST:
        return None
    size = given.get("size")
    return types.Resource(
        uri=uri_of(backend, uri),
        name=_words(given.get("name")) or shown(uri)[:TITLE],
        title=_words(given.get("title")),
        description=f"{_described(backend, given.get('description'))} {DATA}",
        mime_type=_words(given.get("mimeType")),
        size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
    )


def _content(backend: str, asked: str, given: object) -> types.TextResourceContents | types.BlobResourceContents:
    row = given if isinstance(given, Mapping) else {}
    there = row.get("uri")
    uri = there if isinstance(there, str) and there else asked
    meta = {META: {"backend": backend, "uri": shown(uri)}}
    mime = _words(row.get("mimeType"))
    if isinstance(blob := row.get("blob"), str):
        return types.BlobResourceContents(uri=uri_of(backend, uri), mime_type=mime, blob=blob, _meta=meta)
    if isinstance(text := row.get("text"), str):
        return types.TextResourceContents(uri=uri_of(backend, uri), mime_type=mime, text=readable(text), _meta=meta)
    raise BackendProtocolError(backend, "a content of its resource is neither text nor bytes")


def _prompt(name: str, backend: str, given: Mapping[str, Any]) -> types.Prompt:
    listed = given.get("arguments")
    arguments = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    return types.Prompt(
        name=name,
        title=_words(given.get("title")),
        description=_described(backend, given.get("description")),
        arguments=[
            types.PromptArgument(
                name=each["name"],
                description=_words(each.get("description"), DESCRIPTION),
                required=each.get("required") is True,
            )
            for each in arguments
            if isinstance(each.get("name"), str)
        ],
    )


def _message(backend: str, given: Mapping[str, Any]) -> types.PromptMessage:
    content = given.get("content")
    try:
        made = block(content if isinstance(content, Mapping) else {"type": "text", "text": json.dumps(content)})
        if isinstance(made, types.TextContent):
            made.text = f"[{backend}] {made.text}"
        return types.PromptMessage(role=given.get("role", "user"), content=made)
    except ValidationError:
        raise BackendProtocolError(backend, "a message of its prompt is none") from None


def _described(backend: str, words: object) -> str:
    return f"[{backend}] {_words(words, DESCRIPTION) or ''}".rstrip()


def _words(given: object, most: int = TITLE) -> str | None:
    return shown(given)[:most] if isinstance(given, str) else None
