"""An engine of another package: found by its address, held to the contract by its own tests."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_memory import AgentMemory, ConfigurationError
from agent_memory.api.memory import has_memories, list_agents
from agent_memory.integrations.hosts.journal import agent_folder
from agent_memory.integrations.hosts.journal import has_memories as has_file_of_memories

PACKAGE = Path(__file__).parent / "shelf_engine"


def install(place: Path, entry: str, *modules: Path) -> Path:
    """Install a package with an entry point into a folder, with pip, and return the folder."""
    wheel = place / "shelf_engine-1.0-py3-none-any.whl"
    files = {module.name: module.read_text() for module in modules} | {
        "shelf_engine-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: shelf-engine\n"
        "Version: 1.0\n",
        "shelf_engine-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
        "shelf_engine-1.0.dist-info/entry_points.txt": f"[agent_memory.engines]\n{entry}\n",
        "shelf_engine-1.0.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    target = place / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    pip += ["--disable-pip-version-check", "--target", str(target), str(wheel)]
    subprocess.run(pip, check=True, timeout=60)
    return target


def test_a_package_of_its_own_is_an_engine_and_is_held_to_the_contract(tmp_path: Path) -> None:
    """Its tests are run as its author would: pytest on a module that inherits the contract."""
    entry = "shelf = shelf_engine:ShelfOpener"
    assert 'shelf = "shelf_engine:ShelfOpener"' in (PACKAGE / "pyproject.toml").read_text()
    site = install(tmp_path, entry, PACKAGE / "shelf_engine.py")
    tests = shutil.copy(PACKAGE / "check_shelf_engine.py", tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    words = ["-q", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "temp"), tests]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout[-4_000:] + run.stderr[-1_000:]
    assert int(run.stdout.rsplit("\n", 2)[-2].split()[0]) > 90, run.stdout


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a package with an entry point where Python finds it."""

    def lay_out(entry: str) -> None:
        info = tmp_path / "shelf_engine-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf-engine\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[agent_memory.engines]\n{entry}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()

    return lay_out


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "shelf_engine_gone",
            r"shelf \(shelf_engine_gone\) cannot be loaded: ModuleNotFoundError: ",
        ),
        ("json:loads", r"shelf \(json:loads\) has no open_engine"),
    ],
)
def test_an_engine_that_cannot_be_had_is_named(
    entry: Callable[[str], None], target: str, message: str
) -> None:
    entry(f"shelf = {target}")
    with pytest.raises(ConfigurationError, match=message):
        AgentMemory("bob", root="shelf:///tmp/x")


@pytest.mark.parametrize("root", ["lance://me:s3cret@host/db?token=t0ken", "postgre://host/db"])
def test_an_address_that_no_engine_reads_is_refused_with_those_there_are(
    entry: Callable[[str], None], root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was taken for a folder, and one was made in the working directory."""
    monkeypatch.chdir(tmp_path)
    entry("shelf = shelf_engine:ShelfOpener")
    scheme = root.partition("://")[0]
    calls: tuple[Callable[[], object], ...] = (
        lambda: AgentMemory("bob", root=root),
        lambda: list_agents(root),
        lambda: has_memories("bob", root),
    )
    for call in calls:
        with pytest.raises(ConfigurationError, match=f"no engine supports {scheme}://") as error:
            call()
        assert "postgresql://, shelf://" in str(error.value)
        assert "s3cret" not in str(error.value)
        assert "t0ken" not in str(error.value)
    assert [place.name for place in tmp_path.iterdir()] == ["shelf_engine-1.0.dist-info"]


def test_what_is_no_address_of_a_server_stays_a_folder(tmp_path: Path) -> None:
    for name in ("a:b", "C:", "9://x"):
        with AgentMemory("bob", root=tmp_path / name) as memory:
            assert memory.path.is_relative_to(tmp_path)


@pytest.mark.parametrize("root", ["shelf:///place", "postgresql://host/db"])
def test_hooks_keep_their_log_under_the_usual_root_beside_an_address(root: str) -> None:
    folder = agent_folder("bob", root)
    assert folder == agent_folder("bob", None)
    assert has_file_of_memories(folder, root)
    assert not has_file_of_memories(folder, None)


def test_only_a_database_that_is_known_is_imported(memory: AgentMemory) -> None:
    with pytest.raises(ConfigurationError, match=r"https://example\.org/a cannot be imported"):
        memory.import_("https://example.org/a")
