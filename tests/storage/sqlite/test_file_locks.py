"""``files.locked``: one holder at a time, threads and processes alike, and nothing left behind."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agent_memory.errors import StorageError, StorageLocked
from agent_memory.runtime.files import locked

HOLDER = """
import sys
from pathlib import Path
from agent_memory.runtime.files import locked
with locked(Path(sys.argv[1]), busy="busy"):
    print("held", flush=True)
    sys.stdin.read()
"""
CROWD = """
import sys
from pathlib import Path
from agent_memory.errors import StorageLocked
from agent_memory.runtime.files import locked
for _ in range(6_000):
    try:
        with locked(Path(sys.argv[1]), busy="busy"):
            pass
    except StorageLocked:
        pass
"""
COUNTER = """
import sys
from pathlib import Path
from agent_memory.errors import StorageLocked
from agent_memory.runtime.files import locked
path, total = Path(sys.argv[1]), Path(sys.argv[2])
mine = 0
for _ in range(2_000):
    try:
        with locked(path, busy="busy"):
            total.write_text(str(int(total.read_text()) + 1))
            mine += 1
    except StorageLocked:
        pass
print(mine)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memories.db-migration"


def start_holder(path: Path) -> subprocess.Popen[str]:
    """Start a process that holds the lock until its stdin ends."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def is_free(path: Path) -> bool:
    try:
        with locked(path, busy="busy"):
            return True
    except StorageLocked:
        return False


def test_the_file_is_private_while_it_is_held_and_gone_afterwards(path: Path) -> None:
    with locked(path, busy="busy"):
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()


def test_the_file_goes_and_the_lock_ends_where_the_body_raises(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(path, busy="busy"):
        raise ZeroDivisionError
    assert not path.exists()
    assert is_free(path)


def test_who_comes_second_is_told_what_is_busy_and_which_file(path: Path) -> None:
    with locked(path, busy="another process is already migrating this memory"):
        with (
            pytest.raises(StorageLocked) as caught,
            locked(path, busy="another process is already migrating this memory"),
        ):
            pytest.fail("both hold it")
        # The one who was refused must not take the file of the one who holds it.
        assert path.exists()
        assert not is_free(path)
    assert str(caught.value) == f"another process is already migrating this memory ({path})"
    assert isinstance(caught.value, StorageError)
    assert isinstance(caught.value.__cause__, OSError)
    assert is_free(path)


def test_between_threads(path: Path) -> None:
    seen: list[bool] = []
    with locked(path, busy="busy"):
        thread = threading.Thread(target=lambda: seen.append(is_free(path)))
        thread.start()
        thread.join()
    thread = threading.Thread(target=lambda: seen.append(is_free(path)))
    thread.start()
    thread.join()
    assert seen == [False, True]


def test_between_processes(path: Path) -> None:
    with start_holder(path) as holder:
        assert not is_free(path)
        holder.communicate("")
        assert holder.returncode == 0
    assert is_free(path)


def test_a_holder_that_was_killed_is_no_obstacle_though_its_file_stays(path: Path) -> None:
    with start_holder(path) as holder:
        holder.kill()
        holder.communicate()
    assert path.exists()
    assert is_free(path)
    assert not path.exists()


def test_a_file_left_from_a_crash_is_no_obstacle(path: Path) -> None:
    path.write_text("left from before the power went")
    assert is_free(path)
    assert not path.exists()


def test_a_symbolic_link_is_refused_and_what_it_names_is_left_alone(
    path: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.write_text("somebody else's")
    path.symlink_to(other)
    with pytest.raises((StorageError, OSError)), locked(path, busy="busy"):
        pytest.fail("the link was followed")
    assert other.read_text() == "somebody else's"


@pytest.mark.parametrize("fault", ["symbolic link", "missing directory", "directory"])
def test_a_file_that_cannot_be_opened_is_an_error_of_ours(
    path: Path, tmp_path: Path, fault: str
) -> None:
    if fault == "symbolic link":
        path.symlink_to(tmp_path / "other")
    elif fault == "directory":
        path.mkdir()
    else:
        path = tmp_path / "missing" / path.name
    with pytest.raises(StorageError, match=path.name), locked(path, busy="busy"):
        pytest.fail("it cannot be locked")


def test_a_lock_that_others_wait_for_never_has_two_holders(path: Path, tmp_path: Path) -> None:
    """Each unlink lets the next one make a new file: a lock on the old one must count nothing."""
    total = tmp_path / "total"
    total.write_text("0")
    command = [sys.executable, "-c", COUNTER, str(path), str(total)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    held = [process.communicate(timeout=60)[0] for process in running]
    assert [process.returncode for process in running] == [0] * 4
    assert int(total.read_text()) == sum(int(number) for number in held)
    assert not path.exists()


def test_nobody_stumbles_over_a_file_that_another_deletes(path: Path) -> None:
    """Between two looks at the path the one who held the lock may delete it."""
    command = [sys.executable, "-c", CROWD, str(path)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate(timeout=60)[1] for process in running] == [""] * 4


def test_no_handle_is_left_open(path: Path) -> None:
    def handles() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    if not Path("/proc/self/fd").exists():
        pytest.skip("only Linux lists the handles of a process")
    before = handles()
    with locked(path, busy="busy"):
        for _ in range(20):
            assert not is_free(path)
    for _ in range(20):
        assert is_free(path)
    assert handles() == before
