from __future__ import annotations

import threading
import time
from pathlib import Path

from agora.app.agora import Agora
from agora.config.load import load_settings


def test_a_server_that_opens_its_store_is_at_work_until_that_is_done(tmp_path: Path) -> None:
    agora = Agora(load_settings({"home": str(tmp_path)}, {}), late=True)
    assert not agora.is_working()
    end = threading.Event()
    agora.open_soon(lambda: end.wait(10))  # type: ignore[arg-type] # what it answers is not looked at
    assert agora.is_working()
    end.set()
    until = time.monotonic() + 10
    while agora.is_working():
        assert time.monotonic() < until
    agora.close()
