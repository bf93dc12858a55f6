from __future__ import annotations

import importlib.util
import mmap
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from agora.app.checking import diagnose
from agora.config.load import load_settings
from agora.errors import ConfigError, MissingExtra
from agora.model.deadline import Deadline
from agora.stores.sqlite.kernels import Kernel, choose_kernel, nearest_of

if TYPE_CHECKING:
    from tests.conftest import Desk, MakeDesk

NAMES = [name for name in ("numpy", "simsimd", "numkong") if name == "numpy" or importlib.util.find_spec(name)]


@pytest.fixture(params=NAMES)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return choose_kernel(request.param)


def plain(codes: NDArray[np.uint8], query: NDArray[np.uint8]) -> list[int]:
    asked = int.from_bytes(query.tobytes(), "little")
    return [(int.from_bytes(code.tobytes(), "little") ^ asked).bit_count() for code in codes]


def made(rows: int, width: int, seed: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (rows, width), dtype=np.uint8), rng.integers(0, 256, width, dtype=np.uint8)


@pytest.mark.parametrize("name", NAMES)
@given(rows=st.integers(0, 40), words=st.integers(1, 40), data=st.data())
def test_every_kernel_counts_the_bits_that_plain_python_counts(
    name: str, rows: int, words: int, data: st.DataObject
) -> None:
    drawn = data.draw(st.binary(min_size=(rows + 1) * words * 8, max_size=(rows + 1) * words * 8))
    codes = np.frombuffer(drawn, np.uint8).reshape(rows + 1, words * 8)
    found = choose_kernel(name).distances(codes[1:], codes[0])
    assert found.dtype == np.uint16
    assert found.tolist() == plain(codes[1:], codes[0])


@pytest.mark.parametrize("rows", [0, 1, 2, 8191, 8192, 8193, 20_001])
def test_no_row_is_lost_between_two_blocks(kernel: Kernel, rows: int) -> None:
    codes, query = made(rows, 48)
    assert kernel.distances(codes, query).tolist() == plain(codes, query)


def test_a_code_of_many_bits_can_differ_in_all_of_them(kernel: Kernel) -> None:
    codes = np.zeros((3, 8184), np.uint8)
    codes[1] = 255
    assert kernel.distances(codes, codes[1].copy()).tolist() == [65472, 0, 65472]


def test_a_file_mapped_for_reading_is_scanned_where_it_lies(kernel: Kernel, tmp_path: Path) -> None:
    codes, query = made(500, 48)
    file = tmp_path / "codes"
    # Five bytes in front: no word lies where the processor likes it.
    file.write_bytes(b"front" + codes.tobytes())
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        seen = np.frombuffer(mapped, np.uint8, offset=5).reshape(500, 48)
        assert not seen.flags.writeable
        found = kernel.distances(seen, query).tolist()
        middle = kernel.distances(seen[100:103], query).tolist()
        del seen
    assert found == plain(codes, query)
    assert middle == found[100:103]


def test_ten_thousand_scans_leave_the_count_of_references_alone(kernel: Kernel) -> None:
    codes, query = made(5, 48)
    kernel.distances(codes, query)
    before = sys.getrefcount(None)
    for _ in range(10_000):
        kernel.distances(codes, query)
    assert abs(sys.getrefcount(None) - before) < 1000


@given(
    distances=st.lists(st.integers(0, 40) | st.sampled_from([0, 384, 65535]), max_size=300),
    limit=st.integers(0, 320),
)
def test_the_nearest_are_the_smallest_and_all_that_tie_with_the_last(distances: list[int], limit: int) -> None:
    last = sorted(distances)[min(limit, len(distances)) - 1] if limit and distances else -1
    found = nearest_of(np.array(distances, np.uint16), limit)
    assert found.dtype == np.int64
    assert found.tolist() == [place for place, distance in enumerate(distances) if distance <= last]


@pytest.mark.parametrize("limit", [1, 10, 1000, 3000, 4999, 5000])
@pytest.mark.parametrize(
    "order",
    [
        lambda distances: distances,
        np.sort,
        lambda distances: np.sort(distances)[::-1].copy(),
        # The sample takes every fourth row: here it sees nothing but far ones, there nothing but near ones.
        lambda distances: np.where(np.arange(5000) % 4 == 0, 65535, distances).astype(np.uint16),
        lambda distances: np.where(np.arange(5000) % 4 == 0, 0, distances).astype(np.uint16),
        np.zeros_like,
    ],
    ids=["random", "ascending", "descending", "far sample", "near sample", "all equal"],
)
def test_the_nearest_are_right_in_any_order(
    order: Callable[[NDArray[np.uint16]], NDArray[np.uint16]], limit: int
) -> None:
    distances = order(np.random.default_rng(1).integers(100, 300, 5000, dtype=np.uint16))
    found = nearest_of(distances, limit)
    last = np.sort(distances)[limit - 1]
    assert found.tolist() == np.flatnonzero(distances <= last).tolist()


def test_without_a_name_the_fastest_that_is_installed_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    if "simsimd" in NAMES:
        assert choose_kernel().name == "simsimd"
        assert choose_kernel().passed_over == ()
    # To the import system this says: there is no such module.
    monkeypatch.setitem(sys.modules, "simsimd", None)
    chosen = choose_kernel()
    assert chosen.name == "numpy"
    assert "simsimd cannot be loaded" in chosen.passed_over[0]


def test_that_a_kernel_was_passed_over_is_told_by_status_and_doctor(
    make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(desk: Desk) -> tuple[dict[str, Any], dict[str, Any]]:
        status = desk.notes.status(desk.caller(), Deadline(20))["index"]
        (row,) = [
            each for each in diagnose(load_settings({"home": str(desk.folder)}, env={})) if "index" in each["name"]
        ]
        return status, row

    if "simsimd" in NAMES:
        status, row = told(make_desk())
        assert (status["kernel"], status["passed_over"]) == ("simsimd", [])
        assert "warning" not in row
    monkeypatch.setitem(sys.modules, "simsimd", None)
    status, row = told(make_desk())
    assert status["kernel"] == "numpy"
    assert "simsimd cannot be loaded" in status["passed_over"][0]
    assert (row["ok"], row["warning"]) == (True, True)
    assert "compares with numpy" in row["message"]
    assert "simsimd cannot be loaded" in row["message"]


def test_a_kernel_without_wide_instructions_is_used_only_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    simsimd = pytest.importorskip("simsimd")
    plain = dict.fromkeys(simsimd.get_capabilities(), False) | {"serial": True}
    monkeypatch.setitem(sys.modules, "simsimd", SimpleNamespace(cdist=simsimd.cdist, get_capabilities=lambda: plain))
    chosen = choose_kernel()
    assert chosen.name == "numpy"
    assert "no code for the wide instructions" in chosen.passed_over[0]
    assert choose_kernel("simsimd").name == "simsimd"


@pytest.mark.parametrize("name", ["simsimd", "numkong"])
def test_a_named_kernel_that_is_not_installed_is_a_missing_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra) as raised:
        choose_kernel(name)
    assert f"pip install {name}" in raised.value.hint


def test_a_name_that_no_kernel_has_is_told_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match="'avx'") as raised:
        choose_kernel("avx")
    assert "numpy, simsimd, numkong" in raised.value.hint


def one_off(_query: Any, codes: NDArray[np.uint8], *_: str, **__: str) -> NDArray[np.float64]:
    return np.ones((1, len(codes)))


def refusing(*_: Any, **__: str) -> NDArray[np.float64]:
    raise ValueError("Unsupported 'dtype'")


@pytest.mark.parametrize(("cdist", "said"), [(one_off, "counts wrong"), (refusing, "refuses packed bits")])
def test_a_kernel_that_does_not_count_right_is_refused_and_never_used(
    cdist: Callable[..., NDArray[np.float64]], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "simsimd", SimpleNamespace(cdist=cdist))
    with pytest.raises(ConfigError, match=said):
        choose_kernel("simsimd")
    chosen = choose_kernel()
    assert chosen.name == "numpy"
    assert said in chosen.passed_over[0]
