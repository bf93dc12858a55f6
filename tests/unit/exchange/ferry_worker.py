"""A process of its own that exports or imports; one JSON document out at the end.

Run as `ferry_worker.py import|export|save FOLDER FILE-OR-NUMBER`.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import psutil
from tests.conftest import Desk
from tests.unit.exchange.ferry import send, take


class Watch:
    """How far this process's memory grew at most, looked at a hundred times a second."""

    def __init__(self) -> None:
        self._memory = psutil.Process().memory_info
        self._before = self.most = self._memory().rss
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while not self._done.wait(0.01):
            self.most = max(self.most, self._memory().rss)

    def grown(self) -> int:
        """In bytes; ends the watch."""
        self._done.set()
        self._thread.join()
        return int(self.most - self._before)


def main(act: str, folder: Path, what: str) -> None:
    """Do it, and say what it took."""
    desk, watch = Desk(folder), Watch()
    told: dict[str, object] = {}
    if act == "import":
        told = take(desk, Path(what)).as_data()
    elif act == "export":
        send(desk, Path(what), read_back=False)
    else:
        told = {"ids": [desk.save(f"saved meanwhile {n}", "worker").id for n in range(int(what))]}
    told["grown"] = watch.grown()
    desk.close()
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
