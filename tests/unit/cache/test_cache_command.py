from __future__ import annotations

from pathlib import Path

from agora.app.administration import cache_of
from agora.app.files import CACHE_FILE
from agora.cache.disk import Disk
from agora.config.load import load_settings
from agora.testing import SilentLog


def test_the_command_tells_what_there_is_and_deletes_it(tmp_path: Path) -> None:
    loaded = load_settings({"home": str(tmp_path)}, env={})
    assert cache_of(loaded, clear=False)["answers"] == 0
    disk = Disk(tmp_path / CACHE_FILE, SilentLog(), entries=10)
    for kind in ("result", "embedding"):
        disk.put(kind, b"k", lambda: b"v", now=0, until=10)
    disk.close()
    assert cache_of(loaded, clear=False) | {"bytes": 0} == {
        "path": str(tmp_path / CACHE_FILE),
        "off": None,
        "answers": 1,
        "embeddings": 1,
        "bytes": 0,
    }
    assert cache_of(loaded, clear=True)["deleted"] == 2
    assert cache_of(loaded, clear=False)["answers"] == 0


def test_a_cache_that_is_off_says_by_what(tmp_path: Path) -> None:
    loaded = load_settings({"home": str(tmp_path), "cache.enabled": False}, env={})
    assert cache_of(loaded, clear=True)["off"] == "by setting"
    assert not (tmp_path / CACHE_FILE).exists()
