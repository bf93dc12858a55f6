"""Where and with what a benchmark ran: goes into every output file."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = (
    "agora-memory",
    "mcp",
    "numpy",
    "onnxruntime",
    "tokenizers",
    "pydantic",
    "simsimd",
    "numkong",
    "faiss-cpu",
    "hnswlib",
)


def describe() -> dict[str, Any]:
    """Processor, system, versions and the settings that change speed."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
        "packages": {name: _version(name) for name in _PACKAGES},
        "OPENBLAS_CORETYPE": os.environ.get("OPENBLAS_CORETYPE"),
        "load": os.getloadavg() if hasattr(os, "getloadavg") else None,
    }


def installed_bytes() -> int:
    """Size of everything in this environment's site-packages."""
    folder = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
