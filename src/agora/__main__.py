"""Entry point of the `agora` command: everything heavy is imported by the command that needs it."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the `agora` command line and exit with its status."""
    if sys.argv[1:2] == ["serve"]:
        from agora.shim import parse  # noqa: PLC0415 - the other commands have no use for it

        given = parse(sys.argv[2:])
        if given is not None:
            from agora.cli.quick import quick_serve  # noqa: PLC0415 - as above

            sys.exit(quick_serve(given))
    from agora.cli.main import run  # noqa: PLC0415 - `agora --version` must not pay for the rest

    run()


if __name__ == "__main__":
    main()
