"""The process of the shared server, as `agora serve` and `agora server start` start it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from agora.cli.quick import SWITCH_SECONDS, leave
from agora.errors import AgoraError, ConfigError
from agora.shim.places import LOCK, REPLACED, RUN, STOPPED

if TYPE_CHECKING:
    from agora.app.over_http import OverHttp
    from agora.config.load import Loaded
    from agora.daemon.hello import Hello

_OWN = frozenset({"namespace.default", "agent", "gateway.expose"})
"""Settings that belong to one session and not to the server."""

_KEPT = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "SHELL"),
        *("SYSTEMROOT", "WINDIR", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "COMSPEC", "PATHEXT"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
    }
)
_KEPT_PREFIXES = ("LC_", "XDG_", "PYTHON")


def run_shared_server(arguments: list[str]) -> NoReturn:
    """Be the shared server and end the process; `arguments` are `--home`, `--config`, `--lock` if that was taken."""
    os.umask(0o077)
    _enough_files()
    gc.disable()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        status = _run(arguments)
    except AgoraError as error:
        print(f"agora: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  {error.hint}", file=sys.stderr)
        status = 2 if isinstance(error, ConfigError) else 1
    leave(status)


_FILES = 1024
"""Descriptors: more than 512 sessions and the store need. With more than this `select` fails in other programs."""

if sys.platform == "win32":

    def _enough_files() -> None:
        """Nothing bounds them here."""
else:

    def _enough_files() -> None:
        """Let the process open `_FILES` files, or as many as it may: who started it may need few; macOS gives 256."""
        import resource  # noqa: PLC0415 - Windows has none

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            with suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _run(arguments: list[str]) -> int:
    given = dict(zip(arguments[::2], arguments[1::2], strict=False))
    options = {name[2:]: given[name] for name in ("--home", "--config") if name in given}
    from agora.config.load import load_settings  # noqa: PLC0415 - the other commands must not pay for it
    from agora.daemon.lock import take  # noqa: PLC0415 - as above
    from agora.daemon.place import listen, run_folder  # noqa: PLC0415 - as above

    loaded = load_settings(options)
    home = loaded.settings.home
    folder = run_folder(home)
    lock = take(folder / LOCK, int(given["--lock"]) if "--lock" in given else None)
    place = listen(home)
    for mark in (STOPPED, REPLACED):
        (folder / mark).unlink(missing_ok=True)
    environment = dict(os.environ)
    _clean(os.environ)
    os.chdir(home)
    return _serve(loaded, options, environment, place, lock)


def _clean(environment: Any) -> None:  # noqa: ANN401 - os.environ has a type of its own
    """Leave what a program needs to run: the rest is the business of the session that happened to start the server."""
    for name in list(environment):
        if name.upper() not in _KEPT and not name.startswith(_KEPT_PREFIXES):
            del environment[name]


def _serve(loaded: Loaded, options: Mapping[str, str], environment: dict[str, str], place: Any, lock: Any) -> int:  # noqa: ANN401 - their types are imported below
    from agora.app.agora import Agora  # noqa: PLC0415 - as above
    from agora.config.load import load_settings  # noqa: PLC0415 - as above
    from agora.config.logs import configure_logging, get_logger  # noqa: PLC0415 - as above
    from agora.daemon.server import SharedServer, Terms, find_peer, run_server  # noqa: PLC0415 - as above
    from agora.protocol.lifecycle import Lifecycle  # noqa: PLC0415 - as above
    from agora.protocol.peer import Peer  # noqa: PLC0415 - as above
    from agora.protocol.server import make_server  # noqa: PLC0415 - as above
    from agora.protocol.tools.table import TABLE  # noqa: PLC0415 - as above

    settings = loaded.settings
    configure_logging(settings)
    log = get_logger("agora.server")

    def of(hello: Hello) -> Loaded:
        env = {name: value for name, value in environment.items() if not name.startswith("AGORA_")} | dict(hello.env)
        return load_settings(hello.options, env, folder=Path(hello.cwd))

    def admit(hello: Hello) -> list[str]:
        differing = _admitted(hello, loaded, of, lambda: load_settings(options, environment))
        if differing:
            log.warning("a session of another server goes on with other settings", settings=", ".join(differing))
        return differing

    def open_peer(hello: Hello) -> Peer:
        lifecycle = Lifecycle(agora.log, "shared")
        folder = Path(hello.cwd)
        connection = agora.connection(
            folder=folder if folder.is_dir() else None,
            lifecycle=lifecycle,
            own=of(hello).settings,
        )
        return Peer(connection, agora.log)

    def open_http(address: str, authenticate: bool) -> OverHttp:
        from agora.app.over_http import listener_at, over_http  # noqa: PLC0415 - most servers serve none

        listener = listener_at(address, authenticate=authenticate)
        return over_http(agora, listener, authenticate=authenticate, services=services)

    terms = Terms(
        admit=admit,
        open_http=open_http,
        open_peer=open_peer,
        safe=tuple(tool.name for tool in TABLE if tool.read_only),
        idle_seconds=settings.server.idle_seconds,
        drain_seconds=settings.server.drain,
        line_bytes=settings.limits.line_bytes,
        busy=lambda: agora.is_working(),  # noqa: PLW0108 - it is made below
        begun=partial(_begun_with, options, environment),
        on_stopped=_marking(settings.home / RUN / STOPPED),
        on_replaced=_marking(settings.home / RUN / REPLACED),
        log=get_logger("agora.transport"),
    )
    agora = Agora(
        loaded,
        late=True,
        server=lambda: shared.details(),  # noqa: PLW0108 - it is made below
        env=environment,
    )
    services = agora.services()
    shared = SharedServer(make_server(services, find_peer, agora.log), place, lock, terms)

    def opened() -> None:
        gc.freeze()
        gc.enable()

    def on_ready() -> None:
        log.info("listening", home=str(settings.home))
        agora.open_soon(opened)
        agora.start_maintenance()

    return run_server(shared, on_ready=on_ready, on_stop=agora.close, terms=terms)


def _admitted(hello: Hello, loaded: Loaded, of: Callable[[Hello], Loaded], as_now: Callable[[], Loaded]) -> list[str]:
    """The settings in which a session that this server serves differs from it: none, or it was open before.

    `of` reads a session's settings, `as_now` the server's own anew.

    Raises: MakesRoom; ConfigError for a new session with other settings, or settings that cannot be.
    """
    from agora import __version__  # noqa: PLC0415 - as above
    from agora.daemon.hello import older  # noqa: PLC0415 - as above
    from agora.daemon.server import MakesRoom  # noqa: PLC0415 - as above

    if older(__version__, hello.version):
        raise MakesRoom(f"a session of release {hello.version} takes over from {__version__}")
    differing = _differing(loaded, of(hello))
    if not differing:
        return []
    if _differing(loaded, as_now()):
        raise MakesRoom("the configuration file has changed")
    if hello.open:
        return differing
    raise ConfigError(f"the shared server runs with other settings: {', '.join(differing)}")


def _begun_with(options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """What the settings came from beside the file."""
    env = {name: value for name, value in environment.items() if name.startswith("AGORA_")}
    return {"options": dict(options), "env": env}


def _marking(file: Path) -> Callable[[], None]:
    def touch() -> None:
        # On a full disk, or in a folder that is gone, the server has to end all the same.
        with suppress(OSError):
            file.touch()

    return touch


def _differing(one: Loaded, other: Loaded) -> list[str]:
    """The settings in which the two differ, apart from those that belong to a session."""
    from agora.config.settings import SETTINGS, value_of  # noqa: PLC0415 - as above

    keys = [*(row.key for row in SETTINGS if row.key not in _OWN), "access"]
    differing = [key for key in keys if value_of(one.settings, key) != value_of(other.settings, key)]
    if "home" in differing and _is_one(one.settings.home, other.settings.home):
        differing.remove("home")
    # The server takes up what changes in its own file while it runs; of another file it knows nothing.
    if one.settings.backends != other.settings.backends and not _is_one(one.place, other.place):
        differing.append("backends")
    return differing


def _is_one(one: Path, other: Path) -> bool:
    """Whether the two name the same file or folder, as with a link on the way to it."""
    if one == other:
        return True
    try:
        return one.samefile(other)
    except OSError:
        return False
