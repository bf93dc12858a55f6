"""Entry point of the `agora` command: everything heavy is imported by the command that needs it."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the `agora` command line and exit with its status."""
    if sys.argv[1:2] == ["serve"]:
        _serve(sys.argv[2:])
    elif sys.argv[1:3] == ["server", "run"]:
        from agora.cli.shared_server import run_shared_server  # noqa: PLC0415 - the other commands have no use for it

        run_shared_server(sys.argv[3:])
    from agora.cli.main import run  # noqa: PLC0415 - `agora --version` must not pay for the rest

    run()


def _serve(arguments: list[str]) -> None:
    """Serve a client and exit; returns if the command line has to see to it."""
    from agora.shim.arguments import parse  # noqa: PLC0415 - as above

    parsed = parse(arguments)
    if parsed is None:
        return
    options, in_process = parsed
    reason = ""
    if not in_process:
        from agora.shim.session import serve_shared  # noqa: PLC0415 - as above

        reason = serve_shared(options)
    from agora.cli.quick import quick_serve  # noqa: PLC0415 - a session of the shared server must not pay for it

    quick_serve(options, in_process=in_process, reason=reason)


if __name__ == "__main__":
    main()
