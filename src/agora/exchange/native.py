r"""Agora's own export format, version 1: what a line holds, and the writing of it.

UTF-8, one JSON object a line, each line ended by one line feed, the whole gzipped if the file's name ends in `.gz`.
JSON is canonical: keys sorted, no white space, no escapes but those that JSON asks for and those of characters that
drive a terminal or end a line (U+007F to U+009F, U+2028, U+2029). A field without a value is left out. Instants are
ISO 8601 in UTC with six digits of the second, as `2026-01-15T12:00:00.000000Z`.

    {"record":"header", ...}       first: what this is and where it comes from
    {"record":"version", ...}      one for each version of an item, in the order in which the store got them
    {"record":"end", ...}          last: a file without it was cut

Header: `format` ("agora-export"), `version` (1), `exported_at`, `release` of Agora, `store` (id), `sequence` of the
journal, `encoder` (`digest` of its fingerprint, `name`, `dimension`), `selection` (`namespaces`, `since`, `live_only`,
`vectors`: what was asked for), `counts` (`versions`, and `namespaces`: name to number).

Version: `id`, `type`, `namespace`, `kind`, `key`, `version` (number within its key), `title`, `content`, `metadata`,
`confidence`, `session`, `seq`, `speaker`, `occurred_at`, `created_at`, `updated_at`, `expires_at`, `supersedes` (id),
`superseded_by` (id), `superseded_at`, `replaces` (of everything it superseded: `id`, `sha256` of the text),
`forgotten_at`, `forget_reason`, `purged_at` (then there is no `content`), `contests` (id of what it stands beside; its
own if that is not in the store), `pinned_at`, `fact`, `summary`, `strategy` (of a message's conversation, where one was
chosen), `savers`, and with vectors `passages`
(`start` and `stop` in code points of the content, `vector`: little-endian float32 in base64).
Of a fact: `subject`, `key`, `value` (none if it was purged), `valid_from`, `valid_to`, `expires_at`, `multi`, `quoted`
(the content is the words that it was taken from), `reverted`, `rank` (of the origin of a purged one: 0 is the user's).
What takes its place is not told: it is drawn from all facts of the same subject and key. A message has `session`, `seq`
and, as its `kind`, the role. Of a summary, whose key is the session: `first` and `last` of the messages that it covers,
`written_by`.
Each saver, the first first: `agent`, `client`, `client_version`, `token` (its name), `session`, `origin`, `first_at`,
`last_at`, `times`, `given` (title, metadata, confidence as this saver gave them, and tags that are this saver's alone),
`tags` (that this saver gave).

End: `versions` (how many), `versions_sha256` (of all version lines: equal for equal contents, whatever the store),
`sha256` (of all lines before this one, line feeds included).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from agora import __version__
from agora.ports.transfer import Extract, Giver, Outgoing, Stated, Version

FORMAT = "agora-export"
FORMAT_VERSION = 1

_DRIVING = re.compile("[\x7f-\x9f\u2028\u2029]")


def line(record: Mapping[str, Any]) -> bytes:
    """A record as its canonical line; None and empty values are left out, at the top and in savers alike."""
    text = json.dumps(_filled(record), ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return _DRIVING.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() + b"\n"


def header(outgoing: Outgoing, extract: Extract, *, all_namespaces: bool, now: datetime) -> dict[str, Any]:
    """The first record of an export."""
    return {
        "record": "header",
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "exported_at": moment(now),
        "release": __version__,
        "store": outgoing.store,
        "sequence": outgoing.sequence,
        "encoder": {
            "digest": outgoing.profile.digest,
            "name": outgoing.profile.name,
            "dimension": outgoing.profile.dimension,
        },
        "selection": {
            "namespaces": None if all_namespaces else sorted(extract.namespaces),
            "since": moment(extract.since),
            "live_only": extract.live_only,
            "vectors": extract.vectors,
        },
        "counts": {"versions": sum(outgoing.counts.values()), "namespaces": dict(outgoing.counts)},
    }


def record_of(version: Version) -> dict[str, Any]:
    """A version as the record that a line holds."""
    return {
        "record": "version",
        "id": version.id,
        "type": version.type,
        "namespace": version.namespace,
        "kind": version.kind,
        "key": version.key,
        "version": version.version,
        "title": version.title,
        "content": version.content,
        "metadata": dict(version.metadata) or None,
        "confidence": version.confidence,
        "session": version.session,
        "seq": version.seq,
        "speaker": version.speaker,
        "occurred_at": moment(version.occurred_at),
        "created_at": moment(version.created_at),
        "updated_at": moment(version.updated_at),
        "expires_at": moment(version.expires_at),
        "supersedes": version.supersedes,
        "superseded_by": version.superseded_by,
        "superseded_at": moment(version.superseded_at),
        "replaces": [
            _filled({"id": old.id, "sha256": old.content_hash.hex() if old.content_hash else None})
            for old in version.replaces
        ]
        or None,
        "forgotten_at": moment(version.forgotten_at),
        "forget_reason": version.forget_reason,
        "purged_at": moment(version.purged_at),
        "contests": version.contests,
        "pinned_at": moment(version.pinned_at),
        "fact": None if version.fact is None else _fact(version.fact),
        "summary": None if version.summary is None else asdict(version.summary),
        "strategy": version.strategy,
        "savers": [_saver(giver) for giver in version.savers],
        "passages": [
            {
                "start": span.start,
                "stop": span.stop,
                "vector": base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode("ascii"),
            }
            for span, vector in version.passages
        ]
        or None,
    }


class Sums:
    """The two sums of an export, over its lines as they pass."""

    def __init__(self) -> None:
        self._all = hashlib.sha256()
        self._versions = hashlib.sha256()
        self.versions = 0

    def take(self, passing: bytes, *, version: bool) -> None:
        """Count one line, in its order."""
        self._all.update(passing)
        if version:
            self._versions.update(passing)
            self.versions += 1

    def end(self) -> dict[str, Any]:
        """The last record, for the lines that passed."""
        return {
            "record": "end",
            "versions": self.versions,
            "versions_sha256": self._versions.hexdigest(),
            "sha256": self._all.hexdigest(),
        }


def moment(at: datetime | None) -> str | None:
    """An instant as this format writes it."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _fact(fact: Stated) -> dict[str, Any]:
    times = ("valid_from", "valid_to", "expires_at")
    return _filled(
        asdict(fact)
        | {name: moment(getattr(fact, name)) for name in times}
        | {name: getattr(fact, name) or None for name in ("multi", "quoted", "reverted")}
    )


def _saver(giver: Giver) -> dict[str, Any]:
    return _filled(
        {
            "agent": giver.agent,
            "client": giver.client,
            "client_version": giver.client_version or None,
            "token": giver.token or None,
            "session": giver.session,
            "origin": giver.origin,
            "first_at": moment(giver.first_at),
            "last_at": moment(giver.last_at),
            "times": giver.times,
            "given": dict(giver.given) or None,
            "tags": list(giver.tags) or None,
        }
    )


def _filled(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
