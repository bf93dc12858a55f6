from __future__ import annotations

from agora.cli import output
from agora.cli.progress import shown
from agora.cli.session import Config, Home, Json, errors_as_status, opened_agora


def reindex(json_wanted: Json = False, home: Home = None, config: Config = None) -> None:
    """Build the vector index anew from the notes.

    After a change of `index.url`, or of a damaged one.

    No model is needed and no note changes. Saves and lexical queries of other processes go on meanwhile.
    """
    with errors_as_status(json_wanted=json_wanted), opened_agora(home, config) as agora, shown() as told:
        built = agora.store.reindex(lambda done, total: told("passages", done, total))
        index = agora.settings.index.url
    result = {"index": index, "passages": built["passages"], "seconds": built["seconds"]}
    if json_wanted:
        output.as_json(result)
    else:
        count = f"{result['passages']:,} passage{'' if result['passages'] == 1 else 's'}"
        output.line(f"{count} in the index {result['index']}, {result['seconds']:.1f} seconds")
