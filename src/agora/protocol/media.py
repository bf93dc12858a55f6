from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

import mcp_types as types

KINDS = ("image", "audio")

_FORM = r"[A-Za-z]{1,20}/[A-Za-z0-9.+-]{1,80}"


def media(block: Mapping[str, Any]) -> types.ImageContent | types.AudioContent | None:
    """A picture or a sound of another server, if it is one: clients hand it on unseen, and one bad block stops them."""
    kind, data, form = block.get("type"), block.get("data"), block.get("mimeType")
    if not isinstance(data, str) or not isinstance(form, str) or not re.fullmatch(_FORM, form):
        return None
    try:
        if not base64.b64decode(data, validate=True) or form.partition("/")[0].lower() != kind:
            return None
    except ValueError:
        return None
    if kind == "image":
        return types.ImageContent(type="image", data=data, mime_type=form)
    return types.AudioContent(type="audio", data=data, mime_type=form)
