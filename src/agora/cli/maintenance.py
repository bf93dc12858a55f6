from __future__ import annotations

from agora.cli import output
from agora.cli.session import Config, Home, Json, errors_as_status, opened_agora


def compact(json_wanted: Json = False, home: Home = None, config: Config = None) -> None:
    """Write the vector index's files anew where it pays.

    That is where it makes them smaller or fewer. Queries go on meanwhile.

    A running server does so by itself, once enough has come or gone: see `index.compact_seconds` and
    `index.compact_dead`. This is for after an import or a large forget, and for a store that no server runs on.
    """
    with errors_as_status(json_wanted=json_wanted), opened_agora(home, config) as agora:
        done = agora.store.compact(force=True)
    if json_wanted:
        output.as_json({"compacted": done is not None} | (done or {}))
    elif done is None:
        print("nothing to compact")
    else:
        print(
            f"generation {done['generation']}: {done['passages']:,} passages, {done['dropped']:,} dropped,"
            f" {done['seconds']:.1f} seconds"
        )
