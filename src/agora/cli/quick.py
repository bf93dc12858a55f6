"""`agora serve` for a client, without the command-line library, which would cost a tenth of the start."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from agora.errors import AgoraError


def quick_serve(options: Mapping[str, str]) -> int:
    """The exit status of a server over stdio; an error is told on stderr."""
    from agora.cli.serve_stdio import serve_stdio  # noqa: PLC0415 - see below

    # Notes are the user's alone: every file made from here on is readable by nobody else.
    os.umask(0o077)
    try:
        return serve_stdio(options)
    except AgoraError as error:
        # It knows the settings, whose import must come after the streams are claimed.
        from agora.cli import output  # noqa: PLC0415 - as said

        output.utf8_streams(sys.stderr)
        return output.fail(error, json_wanted=False)
    except KeyboardInterrupt:
        return 130
