"""Which index a setting names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agora.app.indexing import choose_index, chroma_folder, unused_folders
from agora.config.settings import IndexSettings
from agora.errors import ConfigError
from agora.testing import SilentLog

ROOT = "C:/" if os.name == "nt" else "/"


def test_the_default_is_the_stores_own(tmp_path: Path) -> None:
    assert choose_index(IndexSettings(), tmp_path, SilentLog()) is None


@pytest.mark.parametrize("place", ["", "/"])
def test_chroma_without_a_path_is_in_the_data_folder(place: str) -> None:
    assert chroma_folder(place) is None


@pytest.mark.parametrize("name", ["srv/agora", "with blanks/and ünïcode", "a?b#c%20d"])
def test_a_whole_path_is_taken_as_it_is_written(name: str) -> None:
    place = f"/{ROOT}{name}" if os.name == "nt" else f"{ROOT}{name}"
    assert chroma_folder(place) == Path(ROOT) / name


@pytest.mark.parametrize("place", ["~/agora", "/~/agora"])
def test_a_tilde_is_the_users_home(place: str) -> None:
    assert chroma_folder(place) == Path.home() / "agora"


@pytest.mark.parametrize("place", ["localhost:8000", "chroma.example.com/db", "folder", "../up", "~", "/a\0b"])
def test_hosts_and_relative_paths_are_refused_in_words(place: str) -> None:
    with pytest.raises(ConfigError, match="a host or a relative path") as refused:
        chroma_folder(place)
    assert "its server cannot be used" in refused.value.hint


@pytest.mark.parametrize("url", ["chroma", "chroma:", "chroma:/srv", "chromadb://", "sqlite://", "qdrant://", "SQLITE"])
def test_other_urls_are_refused_with_what_can_be_written(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        choose_index(IndexSettings(url=url), tmp_path, SilentLog())
    assert "`chroma://`" in refused.value.hint


def test_choosing_chroma_makes_nothing_yet(tmp_path: Path) -> None:
    pytest.importorskip("chromadb")
    index = choose_index(IndexSettings(url="CHROMA://"), tmp_path, SilentLog())
    assert index is not None
    assert index.details()["path"] == str(tmp_path / "chroma")
    index.close()
    assert list(tmp_path.iterdir()) == []


def test_folders_of_indexes_that_are_not_in_use_are_known(tmp_path: Path) -> None:
    own, chroma = tmp_path / "index", tmp_path / "chroma"
    elsewhere = (tmp_path / "elsewhere").as_posix()
    assert unused_folders(IndexSettings(), tmp_path) == [chroma]
    assert unused_folders(IndexSettings(url="chroma://"), tmp_path) == [own]
    assert unused_folders(IndexSettings(url=f"chroma://{elsewhere}"), tmp_path) == [own, chroma]
