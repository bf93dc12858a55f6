"""Secrets out of what files hold, before anything is made of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from agora.errors import SecretRefused
from agora.exchange.events import Text
from agora.ports.transfer import Stated, Version
from agora.protocol.redacting import Guard
from agora.text.facts import line, written


def clean_text(text: Text, guard: Guard) -> tuple[Text, Counter[str]]:
    """A text of another tool without secrets, while its tags still have their case, and what was replaced.

    Raises: SecretRefused if that is what the settings want.
    """
    checked = guard.fields(
        {
            "content": text.content,
            "title": text.title,
            "tags": list(text.tags),
            "metadata": dict(text.metadata),
            "agent": text.agent,
            "session": text.session,
            "occurred_at": text.occurred_at,
            "key": text.key,
        }
    )
    if not checked.replaced:
        return text, checked.replaced
    return replace(text, **checked.value | {"tags": tuple(checked.value["tags"])}), checked.replaced


def clean_version(version: Version, guard: Guard) -> tuple[Version, Counter[str]]:
    """A version of an export without secrets, and what was replaced. Where its text changed it has no vectors.

    Raises: SecretRefused if that is what the settings want, and in any case for a namespace that holds a secret.
    """
    place = guard.fields({"namespace": version.namespace}, folded=_FOLDED)
    if place.replaced:
        # A label is no name, and another name would be another place.
        raise SecretRefused({"namespace": sorted(place.replaced)})
    given: dict[str, Any] = {name: getattr(version, name) for name in _NAMES}
    given["savers"] = [{name: getattr(giver, name) for name in _SAVER} for giver in version.savers]
    if version.fact is not None:
        given["fact"] = {name: getattr(version.fact, name) for name in _FACT}
    checked = guard.fields(given, folded=_FOLDED)
    found, replaced = checked.value, checked.replaced
    if version.fact is not None:
        replaced = replaced + _clean_pair(version.fact, found, guard)
    if not replaced:
        return version, replaced
    if version.fact is not None:
        found["fact"] = replace(version.fact, **found["fact"])
    savers = tuple(
        replace(giver, **clean | {"tags": tuple(dict.fromkeys(clean["tags"]))})
        for giver, clean in zip(version.savers, found.pop("savers"), strict=True)
    )
    same = (found["content"], found["title"]) == (version.content, version.title)
    return replace(version, **found, savers=savers, passages=version.passages if same else ()), replaced


def _clean_pair(fact: Stated, found: dict[str, Any], guard: Guard) -> Counter[str]:
    """Clean a value that its key calls a secret, as `password` does, in `found`; what was replaced."""
    said, content = found["fact"], found["content"]
    pair = guard.fields({said["key"]: said["value"]})
    if pair.replaced:
        (clean,) = pair.value.values()
        if content is not None and not fact.quoted:
            found["content"] = line(said["subject"], said["key"], clean)
        elif content is not None:
            found["content"] = content.replace(written(said["value"]), written(clean))
        said["value"] = clean
    return pair.replaced


_NAMES = ("content", "title", "kind", "key", "metadata", "session", "speaker", "forget_reason")
_FACT = ("subject", "key", "value")
_SAVER = ("agent", "client", "client_version", "token", "session", "given", "tags")
_FOLDED = frozenset({"namespace", "tags"})
"""Here these have lost their case long ago."""
