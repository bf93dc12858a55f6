"""Entry point of the `agora` command: everything heavy is imported by the command that needs it."""

from __future__ import annotations


def main() -> None:
    """Run the `agora` command line and exit with its status."""
    from agora.cli.main import run  # noqa: PLC0415 - `agora --version` must not pay for the rest

    run()


if __name__ == "__main__":
    main()
