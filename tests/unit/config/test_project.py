from __future__ import annotations

import os
import re
import shutil
import subprocess
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.config.project import canonical_namespace, project_namespace
from agora.errors import InvalidInput, InvalidNamespace

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> None:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, env=env, check=True, capture_output=True, timeout=60)


def repository(folder: Path, remote: str | None = None) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "--initial-branch=main")
    git(folder, "commit", "--allow-empty", "--message=first")
    if remote is not None:
        git(folder, "remote", "add", "origin", remote)
    return folder


def written(folder: Path, config: str) -> Path:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text(config, encoding="utf-8")
    return folder


def name_of(folder: Path) -> str:
    return project_namespace(folder, home=Path("/nobody's home"))[0]


def test_the_home_folder_and_the_root_are_no_project(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    assert project_namespace(home, home=home) == ("default", "home folder")
    assert project_namespace(home / "x" / "..", home=home) == ("default", "home folder")
    assert project_namespace(Path(tmp_path.anchor), home=home) == ("default", "root of a file system")


def test_the_home_folder_is_the_platforms_when_none_is_given() -> None:
    assert project_namespace(Path.home()) == ("default", "home folder")


def test_a_folder_without_git_is_named_by_itself_and_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "My Notes_2"
    folder.mkdir()
    name, rule = project_namespace(folder, home=tmp_path)
    assert re.fullmatch(r"my-notes-2-[0-9a-f]{6}", name)
    assert rule == "folder"


def test_folders_of_one_name_at_two_places_are_two_projects(tmp_path: Path) -> None:
    assert name_of(tmp_path / "a" / "app") != name_of(tmp_path / "b" / "app")


def test_the_same_folder_by_another_path_is_the_same_project(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    assert name_of(tmp_path / "x" / ".." / "app") == name_of(folder)
    link = tmp_path / "link"
    try:
        link.symlink_to(folder, target_is_directory=True)
    except OSError:
        pytest.skip("links need a right that this user does not have")
    assert name_of(link) == name_of(folder)


def test_a_folder_whose_name_has_nothing_usable_still_has_a_name(tmp_path: Path) -> None:
    assert re.fullmatch(r"folder-[0-9a-f]{6}", name_of(tmp_path / "(((---)))"))
    long = name_of(tmp_path / ("x" * 200))
    assert len(long) == 128


def test_folder_names_of_other_scripts_are_kept(tmp_path: Path) -> None:
    assert name_of(tmp_path / "проект").startswith("проект-")
    assert name_of(tmp_path / "项目").startswith("项目-")


def test_text_that_cannot_be_a_path_is_refused() -> None:
    with pytest.raises(InvalidInput, match="NUL"):
        project_namespace(Path("a\0b"), home=Path("/h"))


@pytest.mark.skipif(os.name == "nt", reason="Windows has such names")
def test_half_a_character_cannot_be_in_a_path() -> None:
    with pytest.raises(InvalidInput, match="half of a character"):
        project_namespace(Path("a\ud800b"), home=Path("/h"))


@pytest.mark.skipif(os.name == "nt", reason="Windows names are text")
def test_a_folder_name_that_is_no_utf_8_still_has_a_name(tmp_path: Path) -> None:
    assert name_of(tmp_path / os.fsdecode(b"caf\xe9")).startswith("caf-")


@needs_git
def test_the_origin_names_the_project_also_from_a_folder_deep_inside(tmp_path: Path) -> None:
    work = repository(tmp_path / "clone", "git@github.com:Owner/My_Repo.git")
    git(work, "remote", "add", "aaa", "https://github.com/other/fork")
    deep = work / "src" / "deep"
    deep.mkdir(parents=True)
    assert project_namespace(deep, home=tmp_path) == ("owner/my-repo", "git remote origin")


@needs_git
def test_without_origin_the_first_remote_with_a_name_is_used(tmp_path: Path) -> None:
    work = repository(tmp_path / "clone")
    git(work, "remote", "add", "local", str(tmp_path / "elsewhere"))
    git(work, "remote", "add", "upstream", "https://gitlab.example.org/group/sub/tool.git")
    git(work, "remote", "add", "another", "https://github.com/x/y")
    assert project_namespace(work, home=tmp_path) == ("sub/tool", "git remote upstream")


@needs_git
def test_without_remotes_the_main_folder_names_the_project_from_every_worktree(tmp_path: Path) -> None:
    main = repository(tmp_path / "app")
    other = tmp_path / "worktrees" / "feature"
    git(main, "worktree", "add", str(other))
    (other / "src").mkdir()
    name, rule = project_namespace(main, home=tmp_path)
    assert re.fullmatch(r"app-[0-9a-f]{6}", name)
    assert rule == "git folder"
    assert project_namespace(other / "src", home=tmp_path) == (name, rule)
    assert project_namespace(main / "src", home=tmp_path) == (name, rule)


@needs_git
def test_a_worktree_goes_by_the_remotes_of_the_main_repository(tmp_path: Path) -> None:
    main = repository(tmp_path / "app", "ssh://git@example.org:2222/team/app.git")
    git(main, "worktree", "add", str(tmp_path / "feature"))
    assert project_namespace(tmp_path / "feature", home=tmp_path)[0] == "team/app"


@needs_git
def test_worktrees_of_a_bare_repository_in_a_hidden_folder_agree(tmp_path: Path) -> None:
    seed = repository(tmp_path / "seed")
    project = tmp_path / "app"
    git(tmp_path, "clone", "--bare", str(seed), str(project / ".bare"))
    (project / ".git").write_text("gitdir: ./.bare\n", encoding="utf-8")
    git(project, "worktree", "add", "one", "main")
    git(project, "worktree", "add", "two")
    names = {name_of(project), name_of(project / "one"), name_of(project / "two")}
    assert len(names) == 1
    assert names.pop().startswith("app-")


@needs_git
def test_a_submodule_goes_by_its_own_remote(tmp_path: Path) -> None:
    library = repository(tmp_path / "library")
    main = repository(tmp_path / "app", "https://github.com/team/app")
    git(main, "submodule", "add", str(library), "vendor/library")
    git(main / "vendor" / "library", "remote", "set-url", "origin", "https://github.com/team/library")
    assert (main / "vendor" / "library" / ".git").is_file()
    assert name_of(main / "vendor" / "library") == "team/library"
    assert name_of(main / "vendor") == "team/app"


@needs_git
def test_a_git_folder_kept_elsewhere_is_found(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "--separate-git-dir", str(tmp_path / "kept.git"))
    git(work, "remote", "add", "origin", "https://github.com/team/apart")
    assert name_of(work) == "team/apart"


def test_git_at_home_does_not_make_one_project_of_everything_below(tmp_path: Path) -> None:
    home = written(tmp_path / "home", '[remote "origin"]\n\turl = https://github.com/me/dotfiles\n')
    name, rule = project_namespace(home / "play", home=home)
    assert name.startswith("play-")
    assert rule == "folder"


def test_a_pointer_to_a_repository_that_is_gone_leaves_the_folders_name(tmp_path: Path) -> None:
    work = tmp_path / "orphan"
    work.mkdir()
    for pointer in ("gitdir: /not/there/.git/worktrees/orphan\n", "nonsense", ""):
        (work / ".git").write_text(pointer, encoding="utf-8")
        name, rule = project_namespace(work, home=tmp_path)
        assert name.startswith("orphan-")
        assert rule == "git folder"


def test_password_user_and_host_of_a_remote_are_in_no_name(tmp_path: Path) -> None:
    work = written(tmp_path / "w", '[remote "origin"]\n\turl = https://me:s3cret@host.example/a/b.git\n')
    assert project_namespace(work, home=tmp_path) == ("a/b", "git remote origin")


@pytest.mark.parametrize(
    ("written_name", "canonical"),
    [
        ("Owner/Repo", "owner/repo"),
        ("my_app", "my-app"),
        ("  team/x  ", "team/x"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Проект", "проект"),
        ("cafe\u0301", "caf\u00e9"),
        ("हिन्दी", "हिन्दी"),
        ("数据库", "数据库"),
        ("a+b@c:d.e-f", "a+b@c:d.e-f"),
        ("shared", "shared"),
        ("Default", "default"),
        ("v1..2", "v1..2"),
        ("x" * 128, "x" * 128),
    ],
)
def test_a_name_has_one_spelling(written_name: str, canonical: str) -> None:
    assert canonical_namespace(written_name) == canonical


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("x" * 129, "longer than 128"),
        ("x" * 2_000_000, "longer than 128"),
        ("a b", "may not contain ' '"),
        ("a\0b", "may not contain"),
        ("a\nb", "may not contain"),
        ("a\ud800b", "may not contain"),
        ("a\\b", "may not contain"),
        ("a*", "may not contain"),
        ("😀", "may not contain"),
        ("/a", "begins or ends"),
        ("a/", "begins or ends"),
        ("a//b", "two in a row"),
        ("a/../b", "between slashes"),
        ("..", "between slashes"),
        ("a/.", "between slashes"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(InvalidNamespace) as caught:
        canonical_namespace(name)
    assert caught.value.param == "namespace"
    assert reason in caught.value.reason
    assert len(str(caught.value.details())) < 800


def test_composed_and_decomposed_letters_are_one_name() -> None:
    for text in ("é", "ᾀ\u0302", "각", "ǻ"):
        decomposed = unicodedata.normalize("NFD", text)
        assert canonical_namespace(text) == canonical_namespace(decomposed)


@given(st.text(max_size=40))
def test_a_canonical_name_is_its_own_canonical_name(text: str) -> None:
    try:
        name = canonical_namespace(text)
    except InvalidNamespace:
        return
    assert canonical_namespace(name) == name
    assert canonical_namespace(unicodedata.normalize("NFD", name)) == name
    assert canonical_namespace(name.replace("-", "_")) == name


@given(st.text(st.characters(exclude_characters="\0/\\", exclude_categories=["Cs"]), min_size=1, max_size=60))
def test_every_folder_has_a_canonical_name(text: str) -> None:
    name, _ = project_namespace(Path("/somewhere/projects") / text, home=Path("/home/x"))
    assert canonical_namespace(name) == name
