"""Which agent a path belongs to: the repository's, however it is written or reached."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent_memory import validate_agent_id
from agent_memory.integrations.hosts.project import project_of


def git(folder: Path, *words: str) -> None:
    named = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *named, *words], cwd=folder, check=True, capture_output=True)


def test_every_place_in_a_repository_is_one_project(tmp_path: Path) -> None:
    (deep := tmp_path / "my shop" / "src" / "deep").mkdir(parents=True)
    git(tmp_path / "my shop", "init")
    project = project_of(str(tmp_path / "my shop"))
    assert project.folder == str(tmp_path / "my shop")
    assert project.agent_id.startswith("my-shop-")
    (link := tmp_path / "link").symlink_to(deep)
    for path in (str(deep), f"{deep}/", f"{deep}/../deep", str(link), str(deep / "not there yet")):
        assert project_of(path) == project


def test_worktrees_share_the_memory_of_their_repository_and_submodules_have_their_own(
    tmp_path: Path,
) -> None:
    (main := tmp_path / "main").mkdir()
    git(main, "init")
    git(main, "commit", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", str(tmp_path / "hotfix"))
    assert project_of(str(tmp_path / "hotfix")) == project_of(str(main))
    (stranger := tmp_path / "stranger").mkdir()
    marker = (tmp_path / "hotfix" / ".git").read_text(encoding="utf-8")
    (stranger / ".git").write_text(marker, encoding="utf-8")
    assert project_of(str(stranger)).folder == str(stranger)
    (inner := tmp_path / "inner").mkdir()
    git(inner, "init")
    git(inner, "commit", "--allow-empty", "-m", "first")
    git(main, "-c", "protocol.file.allow=always", "submodule", "add", str(inner), "vendored")
    assert project_of(str(main / "vendored")).folder == str(main / "vendored")


def test_two_projects_of_one_name_have_two_agents(tmp_path: Path) -> None:
    for parent in ("a", "b"):
        (tmp_path / parent / "api" / ".git").mkdir(parents=True)
    first, second = (project_of(str(tmp_path / parent / "api")).agent_id for parent in "ab")
    assert first != second
    assert first.startswith("api-")
    assert second.startswith("api-")


def test_without_a_repository_a_folder_is_its_own_project(tmp_path: Path) -> None:
    assert project_of(str(tmp_path)).folder == str(tmp_path)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / ".git").write_bytes(b"\xff\xfe")
    assert project_of(str(tmp_path / "broken")).folder == str(tmp_path / "broken")


@given(st.text(st.characters(blacklist_characters="/\x00", codec="utf-8"), max_size=80))
def test_any_name_of_a_folder_makes_an_agent_id(name: str) -> None:
    assert validate_agent_id(project_of(f"/nowhere/{name}").agent_id)
