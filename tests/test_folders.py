"""Which folder may import which, read from the sources alone, and what else holds of them all."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import agent_memory

PACKAGE = "agent_memory"
FLOORS = """
    text
    errors
    models
    runtime
    embeddings storage formats extraction
    services
    api
    __init__
    integrations conformance
    cli
    __main__
"""
"""From the ground up. A folder imports those below it, and itself; on one line, not each other."""
LEVEL = {name: level for level, line in enumerate(FLOORS.split("\n")) for name in line.split()}
MOST_LINES = 550
DRIVERS = {
    "apsw": ("storage.sqlite.connection", "storage.in_memory", "conformance.power_cut"),
    "psycopg": ("storage.postgres.connection",),
    "psycopg_pool": ("storage.postgres.connection",),
}
"""Which modules may import the driver of a database."""
PURE = """
    text services.search.signals services.search.strength services.search.scoring
    services.search.ranking storage.quantization storage.centering
""".split()
ENGINES = ("storage.sqlite", "storage.postgres", "storage.sql")
CONFORMANCE = "conformance"
"""It tries what another program may do to a file: with SQL."""
SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s+(OR\s+\w+\s+)?INTO|DELETE\s+FROM|UPDATE\s+\w+\s+SET|PRAGMA)\s",
    re.DOTALL,
)
WRITTEN = re.compile(
    r"\b(?:INSERT\s+(?:OR\s+\w+\s+)?INTO|DELETE\s+FROM|UPDATE(?:\s+OR\s+\w+)?)\s+([a-z_]+)\b"
)
TOGETHER: tuple[set[str], ...] = (
    {"tables.memories", "tables.memory_rows"},
    {"tables.graph", "tables.graph_maintenance"},
    {"tables.history", "tables.stored_rows"},
)
"""Modules that write the same tables: one for everyday use, one for undo, import and the like."""
VAGUE = {"it", "one", "told", "there", "said", "found", "those", "given", "every", "holds"}
"""Words that say nothing of what they name. A noun always says more: ``memory``, ``report``."""
OTHER_SQLITES = {"sqlite3", "_sqlite3", "pysqlite2", "pysqlite3", "sqlcipher3", "aiosqlite"}
STANDARD_LIBRARY = {*sys.stdlib_module_names, "_sha2"} - OTHER_SQLITES - {"dbm"}
"""What a pure module may import; `_sha2` came with Python 3.12."""


@dataclass(frozen=True)
class Import:
    """A module that another imports, at once, later or for its types, and the names taken."""

    target: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Module:
    """A module's source, taken apart."""

    name: str
    text: str
    tree: ast.Module
    imports: tuple[Import, ...]

    @property
    def folder(self) -> str:
        """The folder at the package root, or the module there, that this one is in."""
        return folder_of(self.name)


Modules = Mapping[str, Module]


# Reading ------------------------------------------------------------------------------------


def parsed(sources: Mapping[str, str]) -> Modules:
    """Take sources apart; the keys are the modules' full names."""
    modules = {}
    for name, text in sources.items():
        tree = ast.parse(text)
        imports = tuple(_imports(tree, name, frozenset(sources)))
        modules[name] = Module(name, text, tree, imports)
    return modules


def _imports(node: ast.AST, module: str, known: frozenset[str]) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, ()) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            source = _absolute(child, module, known)
            for alias in child.names:
                inner = f"{source}.{alias.name}"
                names = () if inner in known else (alias.name,)
                yield Import(source if names else inner, names)
        elif isinstance(child, ast.Call) and child.args:
            called, first = ast.unparse(child.func).rpartition(".")[2], child.args[0]
            if called in ("import_module", "__import__") and isinstance(first, ast.Constant):
                yield Import(str(first.value), ())
        yield from _imports(child, module, known)


def _absolute(node: ast.ImportFrom, module: str, known: frozenset[str]) -> str:
    if not node.level:
        return node.module or ""
    is_package = any(name.startswith(f"{module}.") for name in known)
    parts = module.split(".")
    above = parts[: len(parts) - node.level + int(is_package)]
    return ".".join([*above, *([node.module] if node.module else [])])


def sources_of(package: Path) -> dict[str, str]:
    return {
        ".".join((PACKAGE, *path.relative_to(package).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path.read_text(encoding="utf-8")
        for path in sorted(package.rglob("*.py"))
    }


def folder_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def is_ours(module: str) -> bool:
    return module == PACKAGE or module.startswith(f"{PACKAGE}.")


def is_in(module: str, *packages: str) -> bool:
    """Return whether a module is one of these of ours, or in one."""
    return any(f"{module}.".startswith(f"{PACKAGE}.{package}.") for package in packages)


def used(modules: Modules, names: Iterable[str], is_wrong: Callable[[str], bool]) -> list[str]:
    """List what these modules import and should not."""
    return [
        f"{name} imports {target}"
        for name in names
        for target in dict.fromkeys(one.target for one in modules[name].imports)
        if is_wrong(target)
    ]


# The rules ----------------------------------------------------------------------------------


def a_folder_imports_what_is_below_it(modules: Modules) -> list[str]:
    problems = []
    for name, module in modules.items():
        level = LEVEL[module.folder]
        for one in module.imports:
            target = folder_of(one.target)
            if is_ours(one.target) and target != module.folder and LEVEL[target] >= level:
                problems.append(f"{name} imports {one.target}")
    return problems


def nothing_imports_itself_through_others(modules: Modules) -> list[str]:
    needs = {
        name: sorted({needed.target for needed in module.imports if needed.target in modules})
        for name, module in modules.items()
    }
    ways = [_way_back(start, needs) for start in sorted(modules)]
    # A ring is named once, from its first module by name.
    return [" imports ".join(way) for way in ways if way and way[0] == min(way)]


def only_the_connection_knows_the_driver(modules: Modules) -> list[str]:
    problems = []
    for driver, places in DRIVERS.items():
        others = [name for name in modules if not is_in(name, *places)]
        problems += used(modules, others, _is_module_of(driver))
    return problems


def _is_module_of(package: str) -> Callable[[str], bool]:
    return lambda target: target.partition(".")[0] == package


def nothing_uses_another_sqlite(modules: Modules) -> list[str]:
    return used(modules, modules, lambda target: target.partition(".")[0] in OTHER_SQLITES)


def no_property_has_a_lock(modules: Modules) -> list[str]:
    """Until Python 3.12 a forked child may wait for ever for that of ``cached_property``."""
    return [
        f"{name} imports {one.target}.cached_property"
        for name, module in modules.items()
        for one in module.imports
        if "cached_property" in one.names
    ]


def what_is_pure_knows_no_file(modules: Modules) -> list[str]:
    def is_wrong(target: str) -> bool:
        if is_ours(target):
            return not is_in(target, "models", "errors", *PURE)
        return target.partition(".")[0] not in STANDARD_LIBRARY

    return used(modules, [name for name in modules if is_in(name, *PURE)], is_wrong)


def no_transaction_waits_for_an_embedder(modules: Modules) -> list[str]:
    inside = [
        name
        for name in modules
        if is_in(name, "services", "storage") and not is_in(name, "services.embedding")
    ]
    return used(modules, inside, lambda target: is_in(target, "embeddings", "services.embedding"))


def what_is_above_the_seam_knows_no_engine(modules: Modules) -> list[str]:
    above = [name for name in modules if LEVEL[modules[name].folder] >= LEVEL["services"]]
    return used(modules, above, lambda target: is_in(target, *ENGINES))


def sql_stands_in_the_engine(modules: Modules) -> list[str]:
    return [
        f"{name} holds SQL: {text[:40]!r}"
        for name, module in modules.items()
        if not (is_in(name, *ENGINES, CONFORMANCE))
        for text in _texts(module.tree)
        if SQL.search(text)
    ]


def a_table_is_written_where_it_belongs(modules: Modules) -> list[str]:
    """A table has one module that writes it; what erases, repairs or upgrades may write any."""
    writers: dict[tuple[str, str], set[str]] = {}
    for engine in ENGINES:
        for module in modules.values():
            # What both engines write alike stands in ``storage.sql``, under the same name.
            name = module.name.replace(".storage.sql.", f".{engine}.tables.")
            if is_in(name, f"{engine}.tables") and not is_in(name, f"{engine}.tables.erasure"):
                for text in _texts(module.tree):
                    for table in WRITTEN.findall(text):
                        place = name.removeprefix(f"{PACKAGE}.{engine}.")
                        writers.setdefault((engine, table), set()).add(place)
    return [
        f"{table} is written in {' and '.join(sorted(names))}"
        for (_, table), names in sorted(writers.items())
        if len(names) > 1 and names not in TOGETHER
    ]


def _texts(tree: ast.Module) -> Iterator[str]:
    """Yield the texts of a module that are no docstrings; ``{}`` for what is put into them."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (it.value if isinstance(it, ast.Constant) else "{}" for it in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and id(node) not in documentation | inside:
            yield str(node.value)


def the_edges_use_public_names(modules: Modules) -> list[str]:
    edges = [name for name in modules if is_in(name, "cli", "integrations")]
    inside = ("api", "services", "storage")
    return [
        *used(modules, edges, lambda target: is_in(target, *inside)),
        *(f"{name} uses {ast.unparse(node)}" for name in edges for node in _private(modules[name])),
    ]


def _private(module: Module) -> Iterator[ast.Attribute]:
    """Yield where a module uses a private part of an object; those of named tuples are none."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls" | "os")):
                continue
            case ast.Attribute(attr=name) if re.match(
                r"_(?!_|replace$|asdict$|fields$|make$)", name
            ):
                yield node


def every_module_says_what_it_is_and_is_short(modules: Modules) -> list[str]:
    lines = {name: len(module.text.splitlines()) for name, module in modules.items()}
    return [
        *(f"{n} has no docstring" for n, one in modules.items() if not ast.get_docstring(one.tree)),
        *(f"{name} has {count} lines" for name, count in lines.items() if count > MOST_LINES),
    ]


def a_method_of_the_seam_is_described_once(modules: Modules) -> list[str]:
    """What an engine's method means is said by the seam; an engine says what is its own."""
    inside = {name: module for name, module in modules.items() if is_in(name, "storage")}
    methods = {
        (name, group.removeprefix("SQLite").removeprefix("Postgres"), method): text
        for name, module in inside.items()
        for group, method, text in _methods(module.tree)
    }
    seam = {key[1:]: text for key, text in methods.items() if not is_in(key[0], *ENGINES)}
    alike = {key[1:]: text for key, text in methods.items() if is_in(key[0], ENGINES[1]) and text}
    return [
        f"{name}: {group}.{method} {'repeats what another says' if text else 'has no docstring'}"
        for (name, group, method), text in methods.items()
        if (is_in(name, *ENGINES) and text == seam.get((group, method)))
        or (
            is_in(name, ENGINES[0])
            and text == alike.get((group, method), 0)
            and (group, method) in seam
        )
    ]


def _methods(tree: ast.Module) -> Iterator[tuple[str, str, str | None]]:
    """Yield the public methods of a module's public classes, with their docstrings."""
    for group in tree.body:
        if isinstance(group, ast.ClassDef) and not group.name.startswith("_"):
            for method in group.body:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                    yield group.name, method.name, ast.get_docstring(method)


def names_say_what_they_name(modules: Modules) -> list[str]:
    """No variable, parameter, attribute, function or class; fields of a record are its format's."""
    return [
        f"{name}:{line} names something {word!r}"
        for name, module in modules.items()
        for line, word in sorted(_names(module.tree))
        if word.strip("_") in VAGUE
    ]


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield what a module gives names to, with the lines."""
    fields = {
        id(statement.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=word, ctx=ast.Store()) if id(node) not in fields:
                yield node.lineno, word
            case ast.Attribute(attr=word, ctx=ast.Store()) | ast.arg(arg=word):
                yield node.lineno, word
            case ast.FunctionDef(name=word) | ast.AsyncFunctionDef(name=word):
                yield node.lineno, word
            case ast.ClassDef(name=word) | ast.ExceptHandler(name=str(word)):
                yield node.lineno, word
            case ast.alias(asname=str(word)):
                yield node.lineno, word
            case ast.MatchAs(name=str(word)) | ast.MatchStar(name=str(word)):
                yield node.lineno, word


def _way_back(start: str, needs: Mapping[str, list[str]]) -> list[str]:
    """Return the shortest way from a module to itself, or nothing."""
    ways = [[start]]
    seen: set[str] = set()
    while ways:
        way = ways.pop(0)
        for target in needs[way[-1]]:
            if target == start:
                return [*way, start]
            if target not in seen:
                seen.add(target)
                ways.append([*way, target])
    return []


RULES: list[Callable[[Modules], list[str]]] = [
    a_folder_imports_what_is_below_it,
    nothing_imports_itself_through_others,
    only_the_connection_knows_the_driver,
    nothing_uses_another_sqlite,
    no_property_has_a_lock,
    what_is_pure_knows_no_file,
    no_transaction_waits_for_an_embedder,
    what_is_above_the_seam_knows_no_engine,
    sql_stands_in_the_engine,
    a_table_is_written_where_it_belongs,
    the_edges_use_public_names,
    every_module_says_what_it_is_and_is_short,
    names_say_what_they_name,
    a_method_of_the_seam_is_described_once,
]

# The tests ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def modules() -> Modules:
    (place,) = agent_memory.__path__
    return parsed(sources_of(Path(place)))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_library_keeps_the_rule(modules: Modules, rule: Callable[[Modules], list[str]]) -> None:
    assert rule(modules) == []


def test_the_package_root_has_few_entries() -> None:
    (place,) = agent_memory.__path__
    hidden = ("__pycache__", "migrations")  # a wheel has the migrations inside the package
    folders = [it for it in Path(place).iterdir() if any(it.glob("*.py")) and it.name not in hidden]
    assert len(folders) <= 12


# A small library that keeps every rule.
SOUND = {
    f"{PACKAGE}{name}": f'"""What it is."""\n{code}\n'
    for name, code in {
        "": f"from {PACKAGE}.api.memory import AgentMemory\n__all__ = ['AgentMemory']",
        ".__main__": f"from {PACKAGE}.cli import main",
        ".errors": "class ValidationError(ValueError): pass",
        ".text": "",
        ".text.dates": "import re",
        ".models": "",
        ".models.memory": f"from {PACKAGE}.errors import ValidationError",
        ".runtime": "",
        ".runtime.files": f"from {PACKAGE}.models.memory import LIMIT",
        ".storage": "",
        ".storage.centering": "import math",
        ".storage.sqlite": "",
        ".storage.sqlite.connection": "import apsw",
        ".storage.sqlite.tables": "",
        ".storage.sqlite.tables.memories": "x = 'INSERT INTO memories VALUES (1)'",
        ".storage.sqlite.tables.history": "x = 'DELETE FROM history'",
        ".storage.sqlite.schema": f"from {PACKAGE}.storage.sqlite.connection import Database",
        ".embeddings": "",
        ".services": "",
        ".services.search": "",
        ".services.search.ranking": f"from {PACKAGE}.text.dates import Span",
        ".services.store": f"from {PACKAGE}.services.search import ranking",
        ".services.embedding": f"from {PACKAGE} import embeddings",
        ".api": "",
        ".api.memory": f"from {PACKAGE}.services.store import Store",
        ".integrations": f"from {PACKAGE} import AgentMemory",
        ".cli": f"from {PACKAGE}.cli import read",
        ".cli.read": f"from {PACKAGE} import AgentMemory",
    }.items()
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_sound_library_keeps_the_rule(rule: Callable[[Modules], list[str]]) -> None:
    assert rule(parsed(SOUND)) == []


def test_there_is_a_planted_violation_of_every_rule() -> None:
    assert set(PLANTED) == set(RULES)


# Rule: module, what is added to it, what the rule says of it; @ is the package.
PLANTED: dict[Callable[[Modules], list[str]], list[tuple[str, str, str]]] = {
    a_folder_imports_what_is_below_it: [
        ("text.dates", "from @.models import memory", "imports @.models.memory"),
        ("errors", "from . import text, cli", "imports @.cli"),
        ("storage.sqlite.schema", "from @ import embeddings", "imports @.embeddings"),
        ("services.store", "def f():\n    from @ import AgentMemory", "imports @"),
        ("runtime.files", "import @.storage.centering", "imports @.storage.centering"),
        ("integrations", "from .cli import read", "imports @.cli.read"),
    ],
    nothing_imports_itself_through_others: [
        (
            "storage.sqlite.connection",
            "import @.storage.sqlite.schema",
            "imports @.storage.sqlite.schema imports @.storage.sqlite.connection",
        ),
        ("text.dates", "import @.text.dates", "imports @.text.dates"),
        (
            "storage.sqlite.connection",
            "def f():\n    from @.storage.sqlite.schema import upgrade",
            "imports @.storage.sqlite.schema imports @.storage.sqlite.connection",
        ),
        (
            "storage.sqlite.connection",
            "import typing\nif typing.TYPE_CHECKING:\n    from ..sqlite import schema",
            "imports @.storage.sqlite.schema imports @.storage.sqlite.connection",
        ),
    ],
    only_the_connection_knows_the_driver: [
        ("services.store", "import apsw", "imports apsw"),
        ("cli.read", "from apsw.ext import q", "imports apsw.ext"),
        ("api.memory", "def f():\n    import apsw", "imports apsw"),
        ("storage.sqlite.schema", "import psycopg", "imports psycopg"),
    ],
    nothing_uses_another_sqlite: [
        ("storage.sqlite.connection", "import sqlite3", "imports sqlite3"),
        ("cli", "from sqlite3 import dbapi2", "imports sqlite3"),
        ("text.dates", "__import__('sqlite3')", "imports sqlite3"),
        ("services.store", "import importlib as i\ni.import_module('sqlite3')", "imports sqlite3"),
    ],
    no_property_has_a_lock: [
        (
            "services.store",
            "from functools import cached_property",
            "imports functools.cached_property",
        ),
    ],
    what_is_pure_knows_no_file: [
        ("services.search.ranking", "from @.runtime import files", "imports @.runtime.files"),
        ("text.dates", "import numpy", "imports numpy"),
        ("storage.centering", "def f():\n    import numpy", "imports numpy"),
    ],
    no_transaction_waits_for_an_embedder: [
        ("services.store", "def f():\n    import @.embeddings", "imports @.embeddings"),
        ("services.store", "from @.services.embedding import E", "imports @.services.embedding"),
    ],
    what_is_above_the_seam_knows_no_engine: [
        (
            "services.store",
            "from @.storage.sqlite import schema",
            "imports @.storage.sqlite.schema",
        ),
        ("cli.read", "def f():\n    import @.storage.sqlite", "imports @.storage.sqlite"),
    ],
    sql_stands_in_the_engine: [
        ("services.store", "x = 'SELECT 1 FROM a'", "holds SQL: 'SELECT 1 FROM a'"),
        ("api.memory", "x = f'DELETE FROM {y}'", "holds SQL: 'DELETE FROM {}'"),
    ],
    a_table_is_written_where_it_belongs: [],  # see below: it names a table, no module
    the_edges_use_public_names: [
        ("cli.read", "from @.services import store", "imports @.services.store"),
        ("integrations", "def f():\n    import @.api.memory", "imports @.api.memory"),
        ("cli.read", "def f(memory):\n    memory._store.get('a')", "uses memory._store"),
    ],
    every_module_says_what_it_is_and_is_short: [
        ("errors", "\n" * 548, "has 551 lines"),
    ],
    names_say_what_they_name: [],  # see below: it names a line
    a_method_of_the_seam_is_described_once: [],  # see below: it takes two modules
}


@pytest.mark.parametrize(
    ("rule", "module", "code", "problem"),
    [(rule, *plant) for rule, plants in PLANTED.items() for plant in plants],
)
def test_a_planted_violation_is_named(
    rule: Callable[[Modules], list[str]], module: str, code: str, problem: str
) -> None:
    name = f"{PACKAGE}.{module}"
    planted = {**SOUND, name: SOUND[name] + code.replace("@", PACKAGE) + "\n"}
    assert rule(parsed(planted)) == [f"{name} {problem.replace('@', PACKAGE)}"]


def test_a_table_that_is_written_in_two_modules_is_named() -> None:
    name = f"{PACKAGE}.storage.sqlite.tables.history"
    planted = {**SOUND, name: f"{SOUND[name]}y = f'UPDATE OR IGNORE memories SET {{z}}'\n"}
    assert a_table_is_written_where_it_belongs(parsed(planted)) == [
        "memories is written in tables.history and tables.memories"
    ]


@pytest.mark.parametrize(
    ("docstring", "problem"),
    [
        ("pass", "has no docstring"),
        ("'What it means.'", None),
    ],
)
def test_a_method_without_a_docstring_is_named(docstring: str, problem: str | None) -> None:
    name = f"{PACKAGE}.storage.sqlite.tables.memories"
    table = {name: f"class MemoryTable:\n    def get(self): {docstring}\n    def _f(self): pass"}
    problems = [f"{name}: MemoryTable.get {problem}"] if problem else []
    assert a_method_of_the_seam_is_described_once(parsed(table)) == problems
    seam = {f"{PACKAGE}.storage.tables": "class MemoryTable:\n    def get(self): 'What it means.'"}
    problems = [] if problem else [f"{name}: MemoryTable.get repeats what another says"]
    assert a_method_of_the_seam_is_described_once(parsed(table | seam)) == problems


def test_a_method_that_two_engines_describe_alike_is_named() -> None:
    engines = [f"{PACKAGE}.storage.{engine}.tables.memories" for engine in ("sqlite", "postgres")]
    method = "class MemoryTable:\n    def get(self): '{}'"
    sources = dict.fromkeys(engines, method.format("What is its own.")) | {
        f"{PACKAGE}.storage.tables": method.format("What it means.")
    }
    problems = [f"{engines[0]}: MemoryTable.get repeats what another says"]
    assert a_method_of_the_seam_is_described_once(parsed(sources)) == problems


@pytest.mark.parametrize(
    "code",
    [
        "one = 1",
        "x, it = 1, 2",
        "def f(given): pass",
        "def f(*, said=None): pass",
        "f = lambda one: one",
        "x = [it for it in ()]",
        "x.told = 1",
        "class X: found = 1",
        "class X:\n    def f(self): self._found: int = 1",
        "def _told(): pass",
        "async def there(): pass",
        "import re as those",
        "try: pass\nexcept OSError as it: pass",
        "with open(x) as one: pass",
        "if (found := 1): pass",
        "match x:\n    case [*every]: pass",
    ],
)
def test_a_vague_name_is_named(code: str) -> None:
    (problem,) = names_say_what_they_name(parsed({f"{PACKAGE}.text.dates": code}))
    assert re.fullmatch(rf"{PACKAGE}\.text\.dates:[12] names something '_?[a-z]+'", problem)


def test_a_field_of_a_record_has_the_word_of_its_format() -> None:
    record = {f"{PACKAGE}.models.memory": "class Receipt(Record):\n    found: bool = False"}
    assert names_say_what_they_name(parsed(record)) == []


def test_a_module_without_a_docstring_is_named() -> None:
    bare = {**SOUND, f"{PACKAGE}.bare": "x = 1"}
    assert every_module_says_what_it_is_and_is_short(parsed(bare)) == [
        f"{PACKAGE}.bare has no docstring"
    ]
