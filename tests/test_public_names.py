"""What the package offers: every name exists and is explained, and importing it is quick.

``python tests/test_public_names.py`` writes ``agent_memory/__init__.pyi``, the names for type
checkers, which ``agent_memory/__init__.py`` has in a table and imports when they are asked for.
"""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import pydoc
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import agent_memory
from agent_memory import AgentMemoryError, DuplicateMemory, MemoryNotFound, ValidationError

NAMES: list[str] = agent_memory.__all__
MODULES: dict[str, str] = vars(agent_memory)["_MODULES"]
STUB = Path(*agent_memory.__path__) / "__init__.pyi"


def stub() -> str:
    """Return what ``__init__.pyi`` is to hold."""
    return "\n".join(
        [
            "# Written by `python tests/test_public_names.py`; a test compares the two.",
            *(
                f"from agent_memory.{where} import {name} as {name}"
                for name, where in MODULES.items()
            ),
            "",
            "__version__: str",
            "",
            "__all__ = [",
            *(f'    "{name}",' for name in sorted(NAMES, key=in_order)),
            "]",
            "",
        ]
    )


def in_order(name: str) -> tuple[int, str]:
    """Constants come first, then classes, then functions, each by name."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_the_table_of_public_names_is_sorted_and_has_each_once() -> None:
    table: dict[str, str] = vars(agent_memory)["_NAMES"]
    assert list(table) == sorted(table)
    for names in table.values():
        assert names.split() == sorted(names.split(), key=in_order)
    assert len(NAMES) == sum(len(names.split()) for names in table.values())


def test_no_public_name_is_hidden_or_a_module() -> None:
    for name in NAMES:
        assert not name.startswith("_")
        assert not isinstance(getattr(agent_memory, name), ModuleType)


def test_a_public_name_stands_in_the_table_of_the_module_that_defines_it() -> None:
    for name, module in MODULES.items():
        value = getattr(agent_memory, name)
        if inspect.isclass(value) or inspect.isroutine(value):
            assert value.__module__ == f"agent_memory.{module}"


def test_a_type_checker_is_shown_the_same_names() -> None:
    assert STUB.read_text() == stub(), "run: python tests/test_public_names.py"


PROGRAM = """
from agent_memory import *
import agent_memory

memory = AgentMemory("bob")
text: str = memory.search("lighthouse", limit=agent_memory.MAX_SEARCH_LIMIT)[0].memory.content
async def ask(storage: agent_memory.MemoryStorage) -> list[float]:
    return [memory.relevance_score for memory in await storage.search("how many?")]
number: int = memory.store("The lighthouse is red")
memory.store(5)
agent_memory.NoSuchName
memory.session({"user_id": "alice"}).search("lighthouse", limits=5)
"""


def test_a_program_that_uses_the_package_is_type_checked(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    checker = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "program.py"]
    done = subprocess.run(checker, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    problems = [line.split(":", maxsplit=2)[1:] for line in done.stdout.splitlines()[:-1]]
    assert [line for line, _ in problems][:4] == ["9", "10", "11", "12"], done.stdout + done.stderr
    assert 'expression has type "str", variable has type "int"' in problems[0][1]
    assert 'incompatible type "int"; expected "str"' in problems[1][1]
    assert 'Module has no attribute "NoSuchName"' in problems[2][1]
    assert 'Unexpected keyword argument "limits"' in problems[3][1]


def test_the_names_are_listed_before_they_are_imported() -> None:
    program = "import agent_memory; assert set(agent_memory.__all__) <= set(dir(agent_memory))"
    assert "agent_memory.api" not in loaded_by(program)


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'agent_memory' has no attribute 'Memories'"):
        _ = getattr(agent_memory, "Memories")  # noqa: B009 - mypy sees that there is none
    with pytest.raises(ImportError, match="cannot import name 'Memories'"):
        exec("from agent_memory import Memories")


def test_a_public_model_can_be_pickled() -> None:
    found = agent_memory.SearchFilters(tags=["red"])
    assert pickle.loads(pickle.dumps(found)) == found


def test_help_shows_the_public_names() -> None:
    text = pydoc.plain(pydoc.render_doc(agent_memory))
    assert "class AgentMemory(" in text
    assert "validate_tags(" in text


def test_whatever_the_package_imports_for_its_users_is_a_public_name() -> None:
    imported = {
        name
        for name, value in vars(agent_memory).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert imported <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_exists_and_is_explained(name: str) -> None:
    value = getattr(agent_memory, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        # A class is explained by its own docstring, not by one that it inherits.
        explanation = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
        assert explanation
        assert len(explanation.split()) >= 3
        assert value.__module__.startswith("agent_memory")


@pytest.mark.parametrize("name", NAMES)
def test_the_methods_of_a_public_class_are_explained(name: str) -> None:
    value = getattr(agent_memory, name)
    methods = vars(value).items() if inspect.isclass(value) else ()
    bare = [
        method
        for method, function in methods
        if not method.startswith("_")
        and (inspect.isroutine(function) or isinstance(function, property | classmethod))
        and not function.__doc__
    ]
    assert bare == []


def test_a_star_import_brings_the_public_names() -> None:
    brought: dict[str, object] = {}
    exec("from agent_memory import *", brought)
    assert set(NAMES) == set(brought) - {"__builtins__"}


def errors() -> list[AgentMemoryError]:
    """Return an error of each public class, made of what its constructor takes."""
    faults = [{"loc": ("content",), "msg": "is there", "type": "value_error", "input": 5}]
    plain = [
        kind("what was wrong")
        for kind in (getattr(agent_memory, name) for name in NAMES)
        if isinstance(kind, type)
        and issubclass(kind, AgentMemoryError)
        and kind is not MemoryNotFound
    ]
    return [
        *plain,
        MemoryNotFound("mem-1"),
        ValidationError("content: is there", faults),
        DuplicateMemory("it is there", faults, memory_id="mem-1"),
    ]


@pytest.mark.parametrize("error", errors(), ids=lambda error: type(error).__name__)
def test_an_error_comes_out_of_another_process_as_it_was_raised(error: AgentMemoryError) -> None:
    error.add_note("advice")
    for same in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(same) is type(error)
        assert (str(same), same.args, vars(same)) == (str(error), error.args, vars(error))


def loaded_by(code: str) -> set[str]:
    """Return what a fresh Python has loaded when it has run the code."""
    code += "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("module", ["openai", "numpy", "yaml", "asyncio", "sqlite3", "_sqlite3"])
def test_importing_the_package_does_not_load(module: str, loaded: set[str]) -> None:
    assert "agent_memory.api.memory" in loaded
    assert module not in loaded


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    return loaded_by("from agent_memory import AgentMemory")


def test_importing_the_package_alone_loads_no_other_module_of_it() -> None:
    ours = [name for name in loaded_by("import agent_memory") if name.startswith("agent_memory")]
    assert ours == ["agent_memory"]


def test_neither_storing_nor_searching_loads_another_sqlite_or_a_model(root: Path) -> None:
    found = loaded_by(
        "import agent_memory\n"
        f"with agent_memory.AgentMemory('bob', root={str(root)!r}) as memory:\n"
        "    memory.store('the lighthouse is red')\n"
        "    assert len(memory.search('lighthouse')) == 1\n"
    )
    assert "apsw" in found
    assert not found & {"openai", "numpy", "sqlite3", "_sqlite3", "asyncio"}


def test_the_mcp_server_shakes_hands_before_it_loads_what_calls_need() -> None:
    # A host sends its first prompt, and runs the hook for it, whether the server answers or not.
    found = loaded_by(
        "from agent_memory.cli import commands, mcp\n"
        "from agent_memory.integrations.mcp import MemoryServer, ServedMemory, run, stdio\n"
        "server = MemoryServer(ServedMemory('bob'))\n"
        "assert server.info and server.capabilities and server.answer('tools/list', {})['tools']\n"
    )
    assert not found & {"agent_memory.api.memory", "apsw", "urllib.request", "mcp"}


if __name__ == "__main__":
    STUB.write_text(stub())
