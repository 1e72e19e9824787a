"""What the README and the guides show is run, and what they point at is there."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_server import program_for_shells
from documents import CHECKOUT, DOCUMENTS, GUIDES, PACKAGE, README, anchors, blocks, links

from agent_memory import AgentMemory
from agent_memory.cli.guide import TOPICS, Guide, guides

NAMES = [document.stem for document in DOCUMENTS]


def with_blocks(language: str) -> list[Path]:
    return [document for document in DOCUMENTS if blocks(document, language)]


def name_of(document: Path) -> str:
    return document.stem


FRAMEWORKS = ("llama_index.core", "google.adk", "agent_framework")
"""Packages that the extra ``test`` does not install, as they are imported."""


def absent_frameworks(block: str) -> set[str]:
    """Return the frameworks that a block of code imports and that are not installed."""
    imported = set(re.findall(rf"^from ({'|'.join(FRAMEWORKS)})\b", block, flags=re.MULTILINE))
    return {name for name in imported if not _is_installed(name)}


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # not even what it is in
        return False


# Code -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", with_blocks("python"), ids=name_of)
def test_each_python_block_runs_by_itself(
    document: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    missing: set[str] = set()
    for number, block in enumerate(blocks(document, "python")):
        if absent := absent_frameworks(block):
            missing |= absent
            continue
        (home := tmp_path / str(number)).mkdir()
        monkeypatch.setenv("HOME", str(home))
        exec(compile(block, str(document), "exec"), {"__name__": document.stem})
    if missing:
        pytest.skip(f"blocks need {', '.join(sorted(missing))}, which the tests do not install")
    if document == README:
        printed = capsys.readouterr().out
        assert "Prefer PostgreSQL for new projects" in printed
        assert "## Recent Memories" in printed
        assert "no_match" in printed
        assert "We chose PostgreSQL for the new service" in printed
        assert "I live in Oslo." in printed


def _repository(folder: Path) -> Path:
    """Make a repository with one commit."""
    author = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    commit = ["commit", "-q", "--allow-empty", "-m", "Use PostgreSQL for new projects"]
    for arguments in (["init", "-q"], commit):
        subprocess.run(["git", *author, *arguments], cwd=folder, check=True, timeout=60)
    return folder / ".git"


@pytest.fixture(scope="module")
def quick() -> Iterator[Path]:
    """Give a folder with an ``agent-memory`` that starts quickly: the blocks start it often."""
    with program_for_shells() as folder:
        yield folder


def run_in_shell(block: str, home: Path, quick: Path) -> None:
    """Run a block as it stands, in the checkout; it prints something, and complains of nothing."""
    environment = {
        **os.environ,
        "HOME": str(home),
        "PATH": f"{quick}:{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    if not (CHECKOUT / ".git").exists():  # in a source distribution `git log` has nothing to tell
        environment |= {"GIT_DIR": str(_repository(home))}
    before = sorted(CHECKOUT.iterdir())
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", block],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    # A list that is cut at its limit says so: what the blocks store accumulates.
    unexpected = re.sub(r"note: [\d,]+ more: .*\n", "", done.stderr)
    assert not unexpected, unexpected
    assert done.stdout
    assert sorted(CHECKOUT.iterdir()) == before


@pytest.mark.parametrize("document", with_blocks("bash"), ids=name_of)
def test_each_shell_block_runs_when_it_is_pasted_alone(
    document: Path, tmp_path: Path, quick: Path
) -> None:
    if document.stem == "plain-sqlite" and shutil.which("sqlite3") is None:
        pytest.skip("the sqlite3 shell is not installed")
    for number, block in enumerate(blocks(document, "bash")):
        (home := tmp_path / str(number)).mkdir()
        run_in_shell(block, home, quick)


FOLLOWED = ("first-steps", "shell", "plain-sqlite")
"""Guides that are read from the first block to the last."""


@pytest.mark.parametrize("name", FOLLOWED)
def test_the_shell_blocks_of_a_guide_run_one_after_the_other(
    name: str, tmp_path: Path, quick: Path
) -> None:
    if name == "plain-sqlite" and shutil.which("sqlite3") is None:
        pytest.skip("the sqlite3 shell is not installed")
    for block in blocks(PACKAGE / "guides" / f"{name}.md", "bash"):
        run_in_shell(block, tmp_path, quick)


@pytest.mark.parametrize("document", with_blocks("json"), ids=name_of)
def test_the_json_blocks_are_json_and_call_a_command_that_there_is(document: Path) -> None:
    for block in blocks(document, "json"):
        (servers,) = json.loads(block).values()
        assert servers["memory"]["command"] == "agent-memory"
        assert servers["memory"]["args"][0] == "mcp"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_code_fits_a_terminal(document: Path) -> None:
    assert [line for line in "".join(blocks(document, r"\w*")).splitlines() if len(line) > 80] == []


def test_there_are_blocks_to_run() -> None:
    assert len(blocks(README, "python")) == 3
    assert len(with_blocks("python")) >= 11
    assert len(with_blocks("bash")) >= 4


def test_the_first_command_does_its_job(tmp_path: Path) -> None:
    """What follows the installation in the README's first command, with this installation."""
    lines = README.read_text("utf-8").splitlines()
    (line,) = [line for line in lines if "bench/notes.jsonl" in line]
    words = line.strip().split(" && ")[2:]
    assert len(words) == 2
    for command in words:
        here = command.replace(".venv/bin/", f"{Path(sys.executable).parent}/")
        here = here.replace(".venv/demo", str(tmp_path / "demo"))
        done = subprocess.run(
            ["bash", "-c", here], cwd=CHECKOUT, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
    best = done.stdout.splitlines()[1]
    assert "notes-15" in best
    assert "rarest words" in best


def test_the_notes_are_json_lines_with_ids_of_their_own() -> None:
    lines = (CHECKOUT / "bench" / "notes.jsonl").read_text(encoding="utf-8").splitlines()
    ids = [json.loads(line)["id"] for line in lines]
    assert len(set(ids)) == len(lines) == 20


# Links ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_relative_link_points_at_something(document: Path) -> None:
    for _, target in links(document):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        place = document.parent / path if path else document
        assert place.exists(), target
        if anchor:
            assert anchor in anchors(place), target


@pytest.mark.parametrize("document", GUIDES, ids=name_of)
def test_a_link_to_a_guide_is_named_by_its_topic(document: Path) -> None:
    """In a terminal only the text of a link is left: it is what `agent-memory guide` takes."""
    for text, target in links(document):
        path = target.partition("#")[0]
        if path.endswith(".md"):
            assert text == Path(path).stem


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_file_and_benchmark_that_is_named_is_there(document: Path) -> None:
    text = document.read_text("utf-8")
    modules = re.findall(r"python -m ((?:bench|tests)[.\w]*)", text)
    files = re.findall(r"`((?:agent_memory|tests|bench|migrations)/[\w/.-]*)`", text)
    for name in [*files, *(module.replace(".", "/") for module in modules)]:
        place = CHECKOUT / name
        assert place.exists() or place.with_suffix(".py").exists(), name
    for name in re.findall(r"`([\w/]+/[\w]+\.(?:py|sql))`", text):
        assert (CHECKOUT / name).is_file() or (PACKAGE / name).is_file(), name


def test_a_source_distribution_holds_all_that_is_in_the_repository() -> None:
    if not (CHECKOUT / ".git").exists():
        pytest.skip("this is no repository")
    git = ["git", "-C", str(CHECKOUT), "ls-files"]
    tracked = {name.partition("/")[0] for name in subprocess.check_output(git, text=True).split()}
    build = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"][
        "build"
    ]
    kept = {name.removeprefix("/") for name in build["targets"]["sdist"]["include"]}
    assert tracked - kept == {".gitignore", "pyproject.toml"}  # which a build adds by itself


@pytest.mark.parametrize("document", [README, PACKAGE / "guides" / "working-on-it.md"], ids=name_of)
def test_the_map_has_every_folder_of_the_package(document: Path) -> None:
    rows = re.findall(r"^\| `(\w+)/` \|", document.read_text("utf-8"), flags=re.MULTILINE)
    folders = [place.name for place in PACKAGE.iterdir() if any(place.glob("[!.]*"))]
    assert sorted(rows) == sorted(set(folders) - {"__pycache__", "migrations"})


# What they hold ---------------------------------------------------------------------------------


def test_the_readme_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 200


def test_no_hint_looks_for_the_package_on_an_index() -> None:
    """It is on none: an extra can be added to what is installed, the package itself cannot be."""
    texts = [*DOCUMENTS, *PACKAGE.rglob("*.py")]
    hint = re.compile(r"pip install (-\S+ )*'?agent-memory(?!\[)")
    assert [path.name for path in texts if hint.search(path.read_text("utf-8"))] == []


def test_the_readme_lists_the_guides_as_the_command_does() -> None:
    rows = re.findall(
        r"^\| \[([\w-]+)\]\(agent_memory/guides/([\w-]+)\.md\) \| (.*) \|$",
        README.read_text("utf-8"),
        flags=re.MULTILINE,
    )
    assert rows == [(guide.topic, guide.topic, guide.summary) for guide in guides()]


def test_the_readme_leads_to_what_newcomers_ask() -> None:
    targets = dict(links(README))
    asked = ["keep users apart", "move away", "at a power cut", "worse at"]
    assert [text for text in asked if text not in targets] == []


def test_every_guide_is_a_topic() -> None:
    assert sorted(TOPICS) == [guide.stem for guide in GUIDES]


@pytest.mark.parametrize("guide", guides(), ids=lambda guide: guide.topic)
def test_a_guide_begins_with_a_title_and_a_sentence_that_fits_a_line(guide: Guide) -> None:
    lines = guide.text.split("\n")
    assert lines[0] == f"# {guide.title}"
    assert (lines[1], lines[2], lines[3]) == ("", guide.summary, "")
    assert guide.summary.endswith(".")
    assert len(guide.summary) + max(map(len, TOPICS)) + 2 < 80


def test_the_guide_python_names_every_verb() -> None:
    text = (PACKAGE / "guides" / "python.md").read_text("utf-8")
    verbs = [name for name in dir(AgentMemory) if not name.startswith("_")]
    assert len(verbs) > 40
    assert [name for name in verbs if not re.search(rf"[`.]{name}[`(]", text)] == []
