"""One server of a client's file as a table for `agora.toml`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agora.config import backend_checks as checks
from agora.config.backend_reading import BOUNDS, LONGEST_DESCRIPTION
from agora.exchange.servers.reading import ClientFile, Offered
from agora.exchange.servers.secrets import Secrets, Written
from agora.exchange.servers.variables import NotTaken, Translator

_HTTP = frozenset({"http", "streamable-http", "streamable_http", "streamablehttp", "remote"})
_STDIO = frozenset({"stdio", "local"})
_URLS = ("httpUrl", "url", "serverUrl")
_DENIED = ("excludeTools", "disabled_tools", "disabledTools")
_CHOSEN = ("includeTools", "enabled_tools", "tools")
_LOGIN = ("oauth", "auth", "authProviderType", "headersHelper")
_FILES = ("envFile", "env_file")
_LAUNCHERS = re.compile(r"(?:python[\d.]*|py|uvx?|pipx|npx|bunx|poetry|hatch|env|cmd|wsl)(?:\.exe)?", re.IGNORECASE)
_AGORA = re.compile(r"(?:agora|agora-memory|agora_memory)(?:\.exe|[=<>@\[].*)?", re.IGNORECASE)
_MILLISECONDS = 1_000
"""From here on a timeout is no longer in seconds: nobody waits that long."""


@dataclass(slots=True)
class Taken:
    """A server in Agora's words: `table` has keys and values of `[[backends]]`."""

    table: dict[str, Any]
    wanted: list[tuple[str, str]] = field(default_factory=list)
    """Variables that have to be set for it, and the keys that need them."""
    remarks: list[str] = field(default_factory=list)
    """What of it was not taken over, or was changed."""


def starts_agora(offered: Offered) -> bool:
    """Whether the server is Agora itself, in whatever way it is started."""
    command, args = offered.given.get("command"), offered.given.get("args")
    if offered.name.casefold() == checks.OWN_NAME:
        return True
    if not isinstance(command, str):
        return False
    name = re.split(r"[/\\]", command)[-1]
    if _AGORA.fullmatch(name):
        return True
    words = [each for each in args if isinstance(each, str)] if isinstance(args, list) else []
    return bool(_LAUNCHERS.fullmatch(name)) and any(_AGORA.fullmatch(re.split(r"[/\\]", each)[-1]) for each in words)


def taken(offered: Offered, file: ClientFile, secrets: Secrets) -> Taken:
    """The server as a table, with variables in the place of its secrets.

    Raises: NotTaken.
    """
    return _Server(offered, file, secrets).taken()


class _Server:
    def __init__(self, offered: Offered, file: ClientFile, secrets: Secrets) -> None:
        self._given = offered.given
        self._offered = offered
        self._folder, self._is_project = _folder_of(offered, file)
        self._translator = Translator(file.dialect, self._folder if self._is_project else None)
        self._secrets = secrets
        self._done = Taken({})

    def taken(self) -> Taken:
        name = self._name()
        transport = self._transport()
        self._done.table["name"] = name
        if isinstance(said := self._given.get("description"), str) and 0 < len(said.strip()) <= LONGEST_DESCRIPTION:
            self._done.table["description"] = said.strip()
        if transport == "stdio":
            self._process(name)
        else:
            self._address(name)
        self._tools()
        self._done.table |= self._times()
        if self._translator.asked:
            self._done.wanted += [(each, "asked by the client") for each in self._translator.asked]
        left = [key for key in (*_LOGIN, *_FILES) if self._given.get(key)]
        if left:
            self._done.remarks.append(f"without {', '.join(left)}, which Agora does not have")
        return self._done

    def _name(self) -> str:
        written = self._offered.name
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", written)
        name = re.sub(r"_{2,}", "_", name).strip("-_.")[:64].rstrip("-_.")
        if problem := checks.of_name(name):
            raise NotTaken(f"the name {problem}")
        if name != written:
            self._done.remarks.append(f"is named {name}")
        return name

    def _transport(self) -> str:
        said = next((self._given[key] for key in ("type", "transport", "transportType") if key in self._given), None)
        kind = said.lower() if isinstance(said, str) else None
        url = next((self._given[key] for key in _URLS if isinstance(self._given.get(key), str)), None)
        command = self._given.get("command")
        if kind == "sse" or (kind is None and command is None and url is not None and _is_sse(url)):
            raise NotTaken("speaks HTTP+SSE, which the protocol has given up: ask it for its Streamable HTTP address")
        if kind in _STDIO or (kind is None and isinstance(command, str)):
            if not isinstance(command, str) or not command.strip():
                raise NotTaken("has no command")
            return "stdio"
        if kind in _HTTP or (kind is None and url is not None):
            if url is None:
                raise NotTaken("has no url")
            if kind is None and "httpUrl" not in self._given:
                self._done.remarks.append("is taken for Streamable HTTP: the file does not say")
            return "http"
        raise NotTaken("has neither command nor url" if said is None else f"speaks {said!r}, which Agora does not")

    def _process(self, name: str) -> None:
        given = self._given
        table = self._done.table
        table["command"] = self._placed(self._text("command", given["command"]))
        args = given.get("args") or []
        if not isinstance(args, list):
            raise NotTaken("args are no list")
        written = [self._text("args", each) for each in args]
        if written:
            table["args"] = [
                self._kept(f"args[{n}]", each) for n, each in enumerate(self._secrets.in_arguments(name, written))
            ]
        if isinstance(cwd := given.get("cwd"), str) and cwd.strip():
            table["cwd"] = self._whole(self._text("cwd", cwd))
        elif self._is_project and any(each.startswith(("./", "../", ".\\", "..\\")) for each in written):
            table["cwd"] = str(self._folder)
        env = {key: self._text(f"env.{key}", value) for key, value in self._pairs("env")}
        for each in _texts(given.get("env_vars")):
            env.setdefault(each, f"${{{each}}}")
        table["env"] = {
            key: self._kept(f"env.{key}", self._secrets.in_variable(name, key, value)) for key, value in env.items()
        }

    def _address(self, name: str) -> None:
        given, table = self._given, self._done.table
        url = next(given[key] for key in _URLS if isinstance(given.get(key), str))
        if re.match(r"[a-z]+://[^/?#]*@", url, re.IGNORECASE):
            raise NotTaken("has a user or a password in its address: give it a header in the file first")
        table["url"] = self._kept("url", self._secrets.in_text(name, "url", self._text("url", url)))
        # What stands around a value is no part of it.
        headers = {
            key: self._text(f"headers.{key}", value.strip()) for key, value in self._pairs("headers", "http_headers")
        }
        for key, variable in self._pairs("env_http_headers"):
            headers[key] = f"${{{variable}}}"
        own = [key for key in headers if checks.is_own_header(key)]
        if own:
            self._done.remarks.append(f"without the headers {', '.join(own)}, which Agora sets itself")
        found = {
            key: self._kept(f"headers.{key}", self._secrets.in_header(name, key, value))
            for key, value in headers.items()
            if key not in own
        }
        token = given.get("bearer_token_env_var")
        bearer = f"${{{token}}}" if isinstance(token, str) and token else None
        for key in list(found):
            if key.lower() == "authorization" and (match := re.fullmatch(r"(?i:bearer)[ \t]+(\S+)", found[key])):
                bearer = bearer or match[1]
                del found[key]
        if bearer is not None:
            table["bearer_token"] = bearer
        table["headers"] = found

    def _tools(self) -> None:
        denied = [each for key in _DENIED for each in _texts(self._given.get(key)) if checks.of_pattern(each) is None]
        if denied:
            self._done.table["deny"] = denied
        chosen = [each for key in _CHOSEN for each in _texts(self._given.get(key)) if each != "*"]
        if chosen:
            self._done.remarks.append("with all of its tools: a list of those that are offered is not taken over")

    def _times(self) -> Iterator[tuple[str, float]]:
        given = self._given
        wanted = {
            "timeout": (given.get("tool_timeout_sec"), given.get("timeout")),
            "start_timeout": (given.get("startup_timeout_sec"), given.get("startup_timeout_ms")),
        }
        for key, (seconds, other) in wanted.items():
            found = _number(seconds)
            if found is None and (found := _number(other)) is not None and (key != "timeout" or found >= _MILLISECONDS):
                found /= 1_000
            if found is not None and found > 0:
                yield key, min(found, float(BOUNDS[key].most))

    def _pairs(self, *keys: str) -> Iterator[tuple[str, str]]:
        for key in keys:
            value = self._given.get(key) or {}
            if not isinstance(value, Mapping):
                raise NotTaken(f"{key} is no table")
            for name, each in value.items():
                if each is None:
                    continue
                if isinstance(each, bool):
                    yield name, "true" if each else "false"
                elif isinstance(each, str | int | float):
                    yield name, str(each)
                else:
                    raise NotTaken(f"{key}.{name} is no text")

    def _text(self, key: str, value: object) -> str:
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str):
            raise NotTaken(f"{key} holds what is no text")
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise NotTaken(f"{key} holds half a character")
        return self._translator.text(value)

    def _kept(self, key: str, written: Written) -> str:
        text, variables = written
        self._done.wanted += [(each, key) for each in variables]
        return text

    def _placed(self, command: str) -> str:
        """A command with a folder in it, whole: it may be relative to where the client starts it."""
        return self._whole(command) if "/" in command or os.sep in command else command

    def _whole(self, path: str) -> str:
        if path.startswith(("~", "${", "$${")) or re.match(r"[A-Za-z]:[/\\]|[/\\]", path):
            return path
        return os.path.abspath(self._folder / path)  # noqa: PTH100 - a link stays in it


def _folder_of(offered: Offered, file: ClientFile) -> tuple[Path, bool]:
    """The folder that relative paths of the server start from, and whether it is a project's."""
    if offered.project is not None:
        return Path(offered.project), True
    folder = Path(os.path.abspath(file.path)).parent  # noqa: PTH100 - as above
    if folder.name.startswith("."):
        folder = folder.parent
        return folder, folder != Path.home()
    return folder, file.path.name == ".mcp.json"


def _is_sse(url: str) -> bool:
    return re.split(r"[?#]", url)[0].rstrip("/").endswith("/sse")


def _number(value: object) -> float | None:
    right = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9
    return float(value) if right else None  # type: ignore[arg-type]


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
