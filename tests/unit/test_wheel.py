from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

_ROOT = Path(__file__).parents[2]
_MODEL = "agora/embedding/models/all-MiniLM-L6-v2-int8"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    built = next(WheelBuilder(str(_ROOT)).build(directory=str(tmp_path_factory.mktemp("dist")), versions=["standard"]))
    with zipfile.ZipFile(built) as opened:
        yield opened


def test_the_wheel_holds_the_model_with_the_hashes_of_its_manifest(wheel: zipfile.ZipFile) -> None:
    manifest = json.loads(wheel.read(f"{_MODEL}/manifest.json"))
    for name, file in manifest["files"].items():
        assert hashlib.sha256(wheel.read(f"{_MODEL}/{name}")).hexdigest() == file["sha256"]
    assert f"{_MODEL}/LICENSE" in wheel.namelist()
    assert f"{_MODEL}/MODEL_CARD.md" in wheel.namelist()


def test_the_wheel_holds_every_migration_and_the_type_marker(wheel: zipfile.ZipFile) -> None:
    inside = set(wheel.namelist())
    for file in (_ROOT / "src" / "agora" / "stores" / "sqlite" / "migrations").glob("*.sql"):
        assert f"agora/stores/sqlite/migrations/{file.name}" in inside
    assert "agora/py.typed" in inside


def test_the_wheel_is_small_enough_and_holds_the_package_alone(wheel: zipfile.ZipFile) -> None:
    assert wheel.filename is not None
    assert Path(wheel.filename).stat().st_size < 90_000_000
    assert {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" not in name} == {"agora"}
