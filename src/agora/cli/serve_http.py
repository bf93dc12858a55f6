from __future__ import annotations

import sys
from collections.abc import Mapping

from agora.cli.quick import SWITCH_SECONDS


def serve_http(address: str, options: Mapping[str, str], *, authenticate: bool, in_process: bool) -> int:
    """The exit status of a server at `HOST:PORT`; says on stderr where it listens, once it does.

    The shared server of the data folder serves it, unless `in_process` or the settings say otherwise; then this
    process only stays to be ended.

    Raises: ListenError, ConfigError, and what opening the store and the model raises.
    """
    from agora.config.load import load_settings  # noqa: PLC0415 - stdio and the other commands must not pay for HTTP
    from agora.config.logs import configure_logging, get_logger  # noqa: PLC0415 - as above
    from agora.transport.address import parse_address, require_loopback  # noqa: PLC0415 - as above

    # First of all: a wrong address is told at once.
    host, _ = parse_address(address)
    if not authenticate:
        require_loopback(host.lower(), address)
    if not in_process and load_settings(options).settings.server.shared:
        from agora.cli.attached import Declined, serve_attached  # noqa: PLC0415 - as above

        try:
            return serve_attached(address, options, authenticate=authenticate)
        except Declined as reason:
            print(f"agora: {reason}; HTTP is served by this process alone", file=sys.stderr, flush=True)
    from agora.app.agora import Agora  # noqa: PLC0415 - as above
    from agora.app.over_http import listener_at, over_http  # noqa: PLC0415 - as above

    # Clients of a right address wait from here on instead of failing.
    listener = listener_at(address, authenticate=authenticate)
    loaded = load_settings(options)
    configure_logging(loaded.settings)
    sys.setswitchinterval(SWITCH_SECONDS)
    agora = Agora(loaded)
    log = get_logger("agora.serve")

    def on_ready() -> None:
        log.info("ready", home=str(loaded.settings.home), url=listener.url, token_needed=authenticate)
        # A line that scripts can wait for and read: the port may have been 0.
        print(f"listening on {listener.url}", file=sys.stderr, flush=True)
        agora.encoder.warm_up()
        agora.start_maintenance()

    return over_http(agora, listener, authenticate=authenticate).run(on_ready, agora.close)
