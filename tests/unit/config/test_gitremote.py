from __future__ import annotations

from pathlib import Path

import pytest

from agora.config.gitremote import enclosing_repository, name_in_url


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/owner/repo.git", "owner/repo"),
        ("https://github.com/owner/repo", "owner/repo"),
        ("https://github.com/owner/repo/", "owner/repo"),
        ("http://user:pass@host.example:8080/owner/repo.git", "owner/repo"),
        ("https://user@with@signs@host.example/owner/repo.git", "owner/repo"),
        ("git@github.com:owner/repo.git", "owner/repo"),
        ("github.com:owner/repo", "owner/repo"),
        ("git@host:/owner/repo.git", "owner/repo"),
        ("ssh://git@github.com/owner/repo.git", "owner/repo"),
        ("ssh://git@github.com:22/owner/repo.git", "owner/repo"),
        ("git+ssh://git@github.com/owner/repo.git", "owner/repo"),
        ("ssh://git@[2001:db8::1]:22/owner/repo.git", "owner/repo"),
        ("git@[2001:db8::1]:owner/repo.git", "owner/repo"),
        ("git://host.example/owner/repo.git", "owner/repo"),
        ("https://gitlab.example.org/group/sub/deeper/repo.git", "deeper/repo"),
        ("git@gitlab.example.org:group/sub/repo.git", "sub/repo"),
        ("ssh://git@host.example/~owner/repo.git", "owner/repo"),
        ("https://dev.azure.com/org/project/_git/repo", "project/repo"),
        ("git@ssh.dev.azure.com:v3/org/project/repo", "project/repo"),
        ("https://host.example/owner/My%20Repo.git", "owner/My Repo"),
        ("https://host.example/owner/repo.git?x=1#frag", "owner/repo"),
        ("https://gist.github.com/0123abc.git", "gist.github.com/0123abc"),
        ("git@host.example:repo.git", "host.example/repo"),
        ("https://me:p@ss@host.example/repo.git", "host.example/repo"),
        ("gh:owner/repo", "owner/repo"),
        ("  https://github.com/owner/repo.git  ", "owner/repo"),
    ],
)
def test_owner_and_repository_are_read_from_every_form_of_url(url: str, name: str) -> None:
    assert name_in_url(url) == name


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/srv/git/repo.git",
        "../repo",
        "./a:b/c",
        "repo",
        "file:///srv/git/repo.git",
        "FILE:///srv/git/repo.git",
        "C:/git/repo.git",
        "C:\\git\\repo.git",
        "\\\\server\\share\\repo.git",
        "https://github.com",
        "https://github.com/",
        "https://github.com/../..",
        "https://github.com/owner/.git",
        "ext::sh -c 'echo owner/repo'",
        "git@host:",
    ],
)
def test_a_local_path_or_a_url_without_a_path_has_no_name(url: str) -> None:
    assert name_in_url(url) is None


def remotes(tmp_path: Path, config: str) -> list[tuple[str, str]]:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_bytes(config.encode())
    found = enclosing_repository(tmp_path, stop=tmp_path.parent)
    assert found is not None
    assert found.main == tmp_path
    return list(found.remotes)


def test_origin_comes_first_and_the_rest_in_the_order_of_the_file(tmp_path: Path) -> None:
    config = '[remote "b"]\nurl = u/b\n[remote "a"]\nurl = u/a\n[remote "origin"]\nurl = u/o\n'
    assert remotes(tmp_path, config) == [("origin", "u/o"), ("b", "u/b"), ("a", "u/a")]


@pytest.mark.parametrize(
    "config",
    [
        '[remote "origin"]\n\turl = https://h/o/r\n\turl = https://h/second/r\n\tpushurl = https://h/push/r\n',
        '[REMOTE "origin"]\r\n\tURL=https://h/o/r\r\n',
        '[remote "origin"] url = https://h/o/r\n',
        '[remote "origin"]\nurl = "https://h/o/r" ; said so\n',
        '[remote "origin"]\nurl = https://h/o/r # said so\n',
        '[remote "origin"]\nurl = https://h/\\\no/r\n',
        '; first\n[core]\n\turl = no\n[remote "origin"] # here\n\tfetch = +refs\n\turl = https://h/o/r\n',
        '\ufeff[x]\n[remote "origin"]\nurl = https://h/o/r\n[remote]\nurl = no\n[branch "a]b"]\nurl = no\n',
    ],
)
def test_a_configuration_file_is_read_as_git_reads_it(tmp_path: Path, config: str) -> None:
    assert remotes(tmp_path, config) == [("origin", "https://h/o/r")]


def test_a_hash_inside_quotes_belongs_to_the_value(tmp_path: Path) -> None:
    assert remotes(tmp_path, '[remote "o\\"x"]\nurl = "a#b;c"\n') == [('o"x', "a#b;c")]


def test_a_git_folder_without_configuration_has_no_remotes(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    found = enclosing_repository(tmp_path / "deep", stop=tmp_path.parent)
    assert found is not None
    assert found.remotes == ()


def test_nothing_above_the_stop_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert enclosing_repository(tmp_path / "a" / "b", stop=tmp_path) is None
    assert enclosing_repository(tmp_path / "a" / "b", stop=tmp_path / "a") is None
