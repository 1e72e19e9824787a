"""Nobody else may read a memory, at any moment, whatever the umask: each verb is watched."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from places import NOBODY, finished
from survival.verbs import verbs

from agent_memory import AgentMemory

TESTS = Path(__file__).parents[1]
NAMES = [verb.name for verb in verbs()]

_WATCHES = """
import json, os, stat, sys, tempfile
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import apsw
from survival.verbs import NAME, opened, verbs

root, work = Path(sys.argv[2]), Path(sys.argv[3])
wrong, looks, busy = {}, 0, False

def look(*_):
    global looks, busy
    if busy:
        return
    busy, looks = True, looks + 1
    for place in (root, work):
        for folder, folders, files in os.walk(place):
            for name in folders + files:
                path = os.path.join(folder, name)
                try:
                    mode = os.lstat(path).st_mode
                except FileNotFoundError:
                    continue
                if stat.S_IMODE(mode) & (0o077 if not stat.S_ISLNK(mode) else 0):
                    wrong[path[len(str(place)):]] = oct(stat.S_IMODE(mode))
    busy = False

class Watched(apsw.VFS):
    def __init__(self):
        super().__init__("watched", "unix")
    def xOpen(self, name, flags):
        file = super().xOpen(name, flags)
        look()
        return file
    def xDelete(self, name, sync):
        super().xDelete(name, sync)
        look()

watched = Watched()
apsw.set_default_vfs("watched")
EVENTS = {"open", "os.mkdir", "os.rename", "os.link", "os.remove", "os.chmod", "os.rmdir"}
sys.addaudithook(lambda event, _: look() if event in EVENTS else None)
os.umask(int(sys.argv[4], 8))
for name in sys.argv[5:]:
    verb = next(it for it in verbs() if it.name == name)
    folder = root / name.replace(" ", "-")
    folder.mkdir(0o700)
    folder /= "bob"  # the library makes it
    if verb.opens and not name.startswith("schema"):
        verb.run(folder)
        continue
    verb.prepare(folder)
    verb.run(folder)
if "export" in sys.argv:
    from agent_memory.formats.registry import names
    with opened(root / "export" / "bob" / NAME) as memory:
        for name in names():
            memory.export(root / "export" / ("out-" + name), format=name)
            memory.export(root / "export" / ("out-" + name), format=name, overwrite=True)
        memory.search("walnut", as_of=memory.info().created_at)
        memory.backup()
look()
print(json.dumps([looks, wrong]))
"""


def watched(root: Path, work: Path, umask: str, *names: str) -> tuple[int, dict[str, str]]:
    """Run verbs under a umask, and return how often was looked, and what others could read."""
    printed = finished(_WATCHES, TESTS, root, work, umask, *names, TMPDIR=str(work))
    looks, wrong = json.loads(printed.splitlines()[-1])
    return looks, wrong


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir(mode=0o700)
    return tmp_path / "work"


@pytest.mark.parametrize("part", range(3))
def test_nothing_is_readable_by_others_at_any_call_of_any_verb(
    root: Path, work: Path, part: int
) -> None:
    root.mkdir(mode=0o700)
    names = NAMES[part::3]
    looks, wrong = watched(root, work, "000", *names)
    assert wrong == {}
    assert looks > 50 * len(names)


def test_without_a_log_neither(root: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_MEMORY_JOURNAL", "rollback")
    root.mkdir(mode=0o700)
    _, wrong = watched(root, work, "000", "store", "erase with backups", "restore", "export")
    assert wrong == {}


@pytest.mark.parametrize("umask", ["777", "277", "077"])
def test_a_umask_that_takes_away_our_own_rights_does_no_harm(
    umask: str, public_folder: Path, tmp_path: Path
) -> None:
    """An ordinary user could not open the files again."""
    words = [_AS_NOBODY, str(TESTS), str(public_folder), umask, str(tmp_path)]
    if os.getuid() == 0:
        os.chown(public_folder, NOBODY, NOBODY)
    assert finished(*words).splitlines()[-1] == "kept"
    modes = {
        str(path.relative_to(public_folder)): stat.S_IMODE(path.lstat().st_mode) ^ _wanted(path)
        for path in public_folder.rglob("*")
    }
    assert "root/bob/memories.db" in modes
    assert {name: mode for name, mode in modes.items() if mode} == {}


def _wanted(path: Path) -> int:
    return 0o700 if path.is_dir() else 0o600


_AS_NOBODY = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from agent_memory import AgentMemory
import survival.verbs
place = Path(sys.argv[2])
with AgentMemory("warm", root=sys.argv[4]) as memory:
    memory.store("loads what is loaded late: it may lie where only root can read")
    memory.export(memory.path.with_name("warm.yaml"))
    memory.export(memory.path.with_name("warm.jsonl"))
    memory.check()
    copy = memory.backup()
AgentMemory.restore(memory.path, copy)
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
os.umask(int(sys.argv[3], 8))
for turn in range(2):
    with AgentMemory("bob", root=place / "root") as memory:
        memory.store(f"kept {turn}")
        backup = memory.backup()
        memory.export(place / f"{turn}.yaml")
AgentMemory.restore(place / "root" / "bob" / "memories.db", backup)
with AgentMemory("bob", root=place / "root") as memory:
    assert memory.count() == 2
    assert memory.check().ok
print("kept")
"""


# What was there before ----------------------------------------------------------------------------


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def loose(root: Path) -> Path:
    """A root that its user made, with an agent's folder that others may enter."""
    root.mkdir()
    root.chmod(0o755)
    with AgentMemory("bob", root=root) as memory:
        memory.backup()
    (root / "bob").chmod(0o755)
    (root / "bob" / "backups").chmod(0o777)
    return root


def test_an_agents_folder_is_tightened_and_the_users_own_is_not(loose: Path) -> None:
    with AgentMemory("bob", root=loose) as memory:
        memory.backup(memory.path.with_name("another.db"))
        assert mode_of(loose / "bob") == 0o700
        memory.backup()
        assert mode_of(loose / "bob" / "backups") == 0o700
    assert mode_of(loose) == 0o755


def test_the_folder_of_a_file_that_lies_anywhere_is_its_users(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine").chmod(0o755)
    AgentMemory.open(tmp_path / "mine" / "m.db").close()
    assert mode_of(tmp_path / "mine") == 0o755
    assert mode_of(tmp_path / "mine" / "m.db") == 0o600


def test_the_folder_of_a_file_that_is_refused_is_left_as_it_is(root: Path) -> None:
    (root / "bob").mkdir(parents=True)
    (root / "bob").chmod(0o755)
    (root / "bob" / "memories.db").write_text("no memory" * 1000)
    with pytest.raises(Exception, match="not a database"):
        AgentMemory("bob", root=root)
    assert mode_of(root / "bob") == 0o755


# What others could do is said ---------------------------------------------------------------------


def test_a_file_that_others_could_read_is_named_once_and_made_private(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("Deploys need two approvals")
        path = memory.path
    assert caplog.messages == []
    path.chmod(0o646)
    AgentMemory.open(path).close()
    assert mode_of(path) == 0o600
    (message,) = caplog.messages
    assert message.startswith(f"{path}: others may read and write it (mode 0646): chmod 600")
    with AgentMemory.open(path) as memory:
        assert memory.check().notes == []
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    ("mode", "is_named"),
    [(0o755, False), (0o775, False), (0o1777, False), (0o777, True), (0o702, True)],
)
def test_check_names_a_folder_where_others_may_put_another_file(
    tmp_path: Path, mode: int, is_named: bool
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    folder.chmod(mode)
    with AgentMemory.open(folder / "m.db") as memory:
        memory.store("Deploys need two approvals")
        report = memory.check()
    assert report.ok
    assert [note.partition(":")[0] for note in report.notes] == [str(folder)] * is_named


def test_check_names_a_file_that_was_loosened_while_it_was_open(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.path.chmod(0o640)
        (note,) = memory.check().notes
        assert note == f"{memory.path}: others may read it (mode 0640): chmod 600 makes it private"
        memory.path.chmod(0o600)
        assert memory.check().notes == []


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root gives files away")
def test_check_names_a_file_of_somebody_else_that_all_may_read(
    public_folder: Path, tmp_path: Path
) -> None:
    path = public_folder / "m.db"
    public_folder.chmod(0o777)
    with AgentMemory.open(path) as memory:
        memory.store("Deploys need two approvals")
    path.chmod(0o666)
    lines = finished(_CHECKS_AS_NOBODY, path, tmp_path).splitlines()
    assert [line for line in lines if line.startswith(f"{path}: others may read and write")]
    assert [
        line for line in lines if line.startswith(f"{public_folder}: others may read and write")
    ]
    assert mode_of(path) == 0o666


_CHECKS_AS_NOBODY = """
import os, sys
from agent_memory import AgentMemory
with AgentMemory("warm", root=sys.argv[2]) as memory:
    memory.store("loads what is loaded late")
    memory.check()
os.setgid(65534); os.setuid(65534)
with AgentMemory.open(sys.argv[1]) as memory:
    print(*memory.check().notes, sep="\\n")
"""


@pytest.mark.parametrize(("mode", "is_named"), [(0o700, False), (0o755, True), (0o770, True)])
def test_an_import_names_a_folder_of_memories_that_others_may_read(
    root: Path, tmp_path: Path, mode: int, is_named: bool
) -> None:
    folder = tmp_path / "memories"
    with AgentMemory("bob", root=root) as memory:
        memory.store("Deploys need two approvals")
        memory.export(folder, format="directory")
        folder.chmod(mode)
        notes = memory.import_(folder).notes
        assert len([note for note in notes if note.startswith(f"{folder}: others")]) == is_named
        assert mode_of(folder) == mode
        copy = tmp_path / "memories.yaml"
        memory.export(copy)
        copy.chmod(0o644)
        assert not any("others may" in note for note in memory.import_(copy).notes)


@pytest.mark.parametrize("command", ["import", "restore"])
@pytest.mark.parametrize("owner", ["bob", "eve"])
def test_the_file_that_an_import_or_restore_reads_keeps_its_mode(
    root: Path, tmp_path: Path, cli: Callable[..., Any], command: str, owner: str
) -> None:
    source = tmp_path / "o.db"
    with AgentMemory(owner, root=tmp_path / "elsewhere") as memory:
        memory.store("Deploys need two approvals")
        memory.backup(source)
    with AgentMemory("bob", root=root) as memory:
        memory.store("Prefer tea")
    source.chmod(0o644)
    done = cli("--agent", "bob", command, str(source), *["--yes"] * (command == "restore"))
    assert (done.code == 0) == (command == "import" or owner == "bob"), done.err
    assert mode_of(source) == 0o644


# A root of somebody else --------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root becomes another")
def test_a_root_that_may_not_be_entered_is_a_typed_error(
    public_folder: Path, tmp_path: Path
) -> None:
    for name, mode in (("closed", 0o700), ("open", 0o755)):
        with AgentMemory("bob", root=public_folder / name) as memory:
            memory.store("Deploys need two approvals")
        (public_folder / name).chmod(mode)
    printed = finished(_OPENS_AS_NOBODY, public_folder, tmp_path).splitlines()
    assert printed == ["StorageUnavailable True"] * 3 + ["[]", "StorageUnavailable True"]


_OPENS_AS_NOBODY = """
import os, sys
from agent_memory import AgentMemory, StorageUnavailable
list_agents = AgentMemory.agents
place, warm = sys.argv[1:]
with AgentMemory("warm", root=warm) as memory:
    memory.store("loads what is loaded late: it may lie where only root can read")
list_agents(warm)
os.setgid(65534); os.setuid(65534)
closed = f"{place}/closed"
opens = lambda root: AgentMemory("bob", root=root)
reads = lambda root: AgentMemory("bob", root=root, read_only=True)
for verb, root in ((opens, closed), (reads, closed), (list_agents, closed),
                   (list_agents, f"{place}/open"), (reads, f"{place}/open")):
    try:
        print(verb(root))
    except StorageUnavailable as error:
        print(type(error).__name__, root in str(error))
"""


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root becomes another")
@pytest.mark.parametrize("mode", [0o000, 0o600])
def test_an_agent_whose_folder_its_user_closed_is_listed_with_that_problem(
    public_folder: Path, tmp_path: Path, mode: int
) -> None:
    for name in ("bob", "eve"):
        with AgentMemory(name, root=public_folder) as memory:
            memory.store("Deploys need two approvals")
    os.chown(public_folder / "bob", NOBODY, NOBODY)
    (public_folder / "bob").chmod(mode)
    (line,) = finished(_LISTS_AS_NOBODY, public_folder, tmp_path).splitlines()
    name, problem = line.split(" ", 1)
    assert name == "bob"
    assert f"{public_folder}/bob/memories.db cannot be inspected" in problem


_LISTS_AS_NOBODY = """
import os, sys
from agent_memory import AgentMemory
place, warm = sys.argv[1:]
with AgentMemory("warm", root=warm) as memory:
    memory.store("loads what is loaded late: it may lie where only root can read")
AgentMemory.agents(warm)
os.setgid(65534); os.setuid(65534)
for agent in AgentMemory.agents(place):
    print(agent.agent_id, agent.problem)
"""


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root becomes another")
def test_an_agent_of_somebody_else_is_neither_absent_nor_a_fault_of_ours(
    public_folder: Path, tmp_path: Path
) -> None:
    with AgentMemory("bob", root=public_folder) as memory:
        memory.store("Deploys need two approvals")
    printed = finished(_LOOKS_AS_NOBODY, public_folder, tmp_path).splitlines()
    assert printed[-7:] == ["refused"] * 7


_LOOKS_AS_NOBODY = """
import os, sys
from agent_memory import AgentMemory, AgentMemoryError, MemoryReader, StorageUnavailable
from agent_memory.cli.commands import cli
place, warm = sys.argv[1:]
agent = f"{place}/bob"
memory = AgentMemory("warm", root=warm)
memory.store("loads what is loaded late: it may lie where only root can read")
memory.import_(memory.export(f"{warm}/warm.yaml").path)
def command(*words):
    cli(["--root", place, "--agent", "bob", *words], standalone_mode=False)
def refused(verb, *words):
    try:
        print("no error:", verb(*words))
    except (AgentMemoryError, OSError) as error:
        is_ours = type(error) is StorageUnavailable and place in str(error)
        print("refused" if is_ours else repr(error))
cli(["--root", warm, "--agent", "warm", "info"], standalone_mode=False)
os.setgid(65534); os.setuid(65534)
refused(lambda: AgentMemory.exists("bob", place))
refused(lambda: MemoryReader.open("bob", root=place))
refused(lambda: memory.import_(agent))
refused(lambda: memory.import_(f"{agent}/memories.db"))
for words in (["info"], ["store", "x"], ["import", f"{warm}/warm.yaml"]):
    refused(command, *words)
"""


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root becomes another")
@pytest.mark.parametrize("closed", ["root", "root/bob"])
def test_the_doctor_tells_of_a_folder_that_may_not_be_entered(
    public_folder: Path, tmp_path: Path, closed: str
) -> None:
    with AgentMemory("bob", root=public_folder / "root") as memory:
        memory.store("Deploys need two approvals")
    (public_folder / "root").chmod(0o755)
    (public_folder / closed).chmod(0o700)
    printed = finished(_DIAGNOSES_AS_NOBODY, public_folder, tmp_path)
    report = json.loads(printed.splitlines()[-1])
    assert report["memory"]["memory_count"] is None
    problems = [each["problem"] for each in report["problems"]]
    assert any(f"{public_folder / closed} cannot be written" in it for it in problems)
    assert any("the memory cannot be opened" in problem for problem in problems)


_DIAGNOSES_AS_NOBODY = """
import json, os, sys
from agent_memory import AgentMemory
from agent_memory.integrations.hosts.doctor import Examination
place, warm = sys.argv[1:]
with AgentMemory("warm", root=warm) as memory:
    memory.store("loads what is loaded late: it may lie where only root can read")
os.environ["HOME"] = place
Examination("warm", warm, place).report()
os.setgid(65534); os.setuid(65534)
print(json.dumps(Examination("bob", f"{place}/root", place).report()))
"""
