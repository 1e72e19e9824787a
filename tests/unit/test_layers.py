"""Which module may import which: the direction of the layers, read from the sources alone."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import agent_memory

PACKAGE = "agent_memory"
MOST_LINES = 520


def ours(*names: str) -> frozenset[str]:
    return frozenset(f"{PACKAGE}.{name}" for name in names)


CONNECTION = f"{PACKAGE}.connection"
FILTERS = f"{PACKAGE}.filters"
FACADE = f"{PACKAGE}.memory"
BASE = ours(
    *"vocabulary times validation errors protocols forking credentials credential_formats".split()
)
NAMED_PARTS = ours(
    *"""records keyword filters history scratchpad agent integrity backups accesses vectors
    vector_index fingerprints recalls operations rejections memory_rows ageing erasure reviews
    graph_rows graph_upkeep""".split()
)
PURE = ours(
    *"""ranking evidence dates centering quantization wording neutral rejecting traces
    screening graph_naming""".split()
)
COMPOSERS = ours(
    *"""store noting vector_store retrieval candidates nearest answers checking vector_checks
    schema duplicates similarity merging refusing adding admission gatekeeping retention undoing
    past exporting importing exchange_store search_store life_store erasing proving
    replacing changing decision_store graph_store graph_changing
    graph_importing graph_following""".split()
)
WRITERS = ours(
    "store", "noting", "vector_store", "checking", "schema", "past", "erasing", "replacing"
)
EDGES = ("cli", "interchange", "integrations", "extraction")
OPEN_TO_EDGES = tuple(
    "times errors validation vocabulary files models protocols envelopes wording".split()
)
OTHER_SQLITES = {"sqlite3", "_sqlite3", "pysqlite2", "pysqlite3", "sqlcipher3", "aiosqlite"}


@dataclass(frozen=True)
class Import:
    """A module that another imports, the names taken from it, and whether on being imported."""

    target: str
    names: tuple[str, ...]
    at_once: bool


@dataclass(frozen=True)
class Module:
    """A module's source, taken apart."""

    name: str
    text: str
    tree: ast.Module
    imports: tuple[Import, ...]


Modules = Mapping[str, Module]


# Reading ------------------------------------------------------------------------------------


def parsed(sources: Mapping[str, str]) -> Modules:
    """Take sources apart; the keys are the modules' full names."""
    modules = {}
    for name, text in sources.items():
        tree = ast.parse(text)
        imports = tuple(_imports(tree, name, frozenset(sources), at_once=True))
        modules[name] = Module(name, text, tree, imports)
    return modules


def _imports(
    node: ast.AST, module: str, known: frozenset[str], *, at_once: bool
) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        now = at_once and not _is_later(child)
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, (), now) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            source = _absolute(child, module, known)
            for alias in child.names:
                inner = f"{source}.{alias.name}"
                names = () if inner in known else (alias.name,)
                yield Import(source if names else inner, names, now)
        elif isinstance(child, ast.Call) and child.args:
            called, first = ast.unparse(child.func).rpartition(".")[2], child.args[0]
            if called in ("import_module", "__import__") and isinstance(first, ast.Constant):
                yield Import(str(first.value), (), now)
        yield from _imports(child, module, known, at_once=now)


def _is_later(node: ast.AST) -> bool:
    """Tell whether what stands in a node does not run when its module is imported."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return True
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


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
        ): path.read_text()
        for path in sorted(package.rglob("*.py"))
    }


def is_in(module: str, *packages: str) -> bool:
    """Tell whether a module is one of these packages of ours, or in one."""
    return any(f"{module}.".startswith(f"{PACKAGE}.{package}.") for package in packages)


def is_ours(module: str) -> bool:
    return module == PACKAGE or module.startswith(f"{PACKAGE}.")


def parts(modules: Modules) -> frozenset[str]:
    """Return the parts: those known by name, and whatever else works on a connection.

    What uses a store stands above it, whatever else it uses, and is no part.
    """
    known = {*COMPOSERS, FACADE, *PURE, CONNECTION, PACKAGE, *BASE}
    found = set(NAMED_PARTS)
    for name, module in modules.items():
        targets = {one.target for one in module.imports}
        is_below_the_store = CONNECTION in targets and f"{PACKAGE}.store" not in targets
        is_elsewhere = name in known or is_in(name, "connection", "models", *EDGES)
        if is_below_the_store and not is_elsewhere:
            found.add(name)
    return frozenset(found)


def used(modules: Modules, names: Iterable[str], is_wrong: Callable[[str, str], bool]) -> list[str]:
    """List what these modules import and should not."""
    return [
        f"{name} imports {one.target}"
        for name in names
        if name in modules
        for one in modules[name].imports
        if is_wrong(name, one.target)
    ]


# The rules ----------------------------------------------------------------------------------


def only_the_connection_knows_apsw_and_its_own_modules(modules: Modules) -> list[str]:
    others = [name for name in modules if not is_in(name, "connection")]
    return used(modules, others, lambda _, it: it.startswith(("apsw", f"{CONNECTION}.")))


def nothing_uses_another_sqlite(modules: Modules) -> list[str]:
    return used(modules, modules, lambda _, target: target.partition(".")[0] in OTHER_SQLITES)


def the_base_imports_nothing_above_it(modules: Modules) -> list[str]:
    models = {name for name in modules if is_in(name, "models")}
    base = used(modules, BASE, lambda _, target: is_ours(target) and target not in BASE)
    return base + used(
        modules, models, lambda _, target: is_ours(target) and target not in BASE | models
    )


def parts_do_not_import_each_other(modules: Modules) -> list[str]:
    every = parts(modules)
    return used(modules, sorted(every), lambda name, target: target in every - {name, FILTERS})


def parts_do_not_look_up(modules: Modules) -> list[str]:
    above = {*COMPOSERS, FACADE, PACKAGE, *ours("storage", "directory", "inputs")}
    above |= {name for name in modules if is_in(name, *EDGES)}
    return used(modules, sorted(parts(modules)), lambda _, target: target in above)


def only_the_store_puts_parts_together(modules: Modules) -> list[str]:
    sql = parts(modules) | {CONNECTION}
    others = [name for name in modules if name not in sql | COMPOSERS]
    return used(modules, others, lambda _, target: target in sql)


def only_the_store_opens_write_transactions(modules: Modules) -> list[str]:
    return [
        f"{name} calls {ast.unparse(call.func)}()"
        for name, module in modules.items()
        if name not in WRITERS
        for call in ast.walk(module.tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "write"
        # A file's write() has an argument.
        and (not (call.args or call.keywords) or "database" in ast.unparse(call.func.value))
    ]


def the_facade_knows_no_sql(modules: Modules) -> list[str]:
    sql = parts(modules) | {CONNECTION} | (COMPOSERS - ours("store"))
    return used(modules, [FACADE], lambda _, target: target in sql)


def ranking_is_pure(modules: Modules) -> list[str]:
    def is_wrong(_: str, target: str) -> bool:
        if is_ours(target):
            return target not in BASE | PURE and not is_in(target, "models")
        return target.partition(".")[0] not in sys.stdlib_module_names - OTHER_SQLITES - {"dbm"}

    return used(modules, sorted(PURE), is_wrong)


def embedders_know_no_memories(modules: Modules) -> list[str]:
    inside = [name for name in modules if is_in(name, "embedders")]
    allowed = BASE | set(inside) | ours("models.record")
    return used(modules, inside, lambda _, target: is_ours(target) and target not in allowed)


def no_transaction_waits_for_an_embedder(modules: Modules) -> list[str]:
    inside = parts(modules) | COMPOSERS | PURE | {CONNECTION}
    return used(
        modules,
        sorted(inside),
        lambda _, target: is_in(target, "embedders", "meaning", "migration", "mover"),
    )


def edges_use_public_names_only(modules: Modules) -> list[str]:
    public = _public_names(modules[PACKAGE].tree)
    problems = []
    for name, module in modules.items():
        edge = next((edge for edge in EDGES if is_in(name, edge)), None)
        if edge is None:
            continue
        # The command line offers what the other edges do.
        friends = EDGES if edge == "cli" else (edge,)
        for one in module.imports:
            if one.target == PACKAGE:
                hidden = [inner for inner in one.names if inner not in public]
                problems += [f"{name} imports {PACKAGE}.{inner}" for inner in hidden]
            elif is_ours(one.target) and not is_in(one.target, *friends, *OPEN_TO_EDGES):
                problems.append(f"{name} imports {one.target}")
    return problems


def nothing_below_needs_an_edge(modules: Modules) -> list[str]:
    return [
        f"{name} imports {one.target}"
        for name, module in modules.items()
        if not is_in(name, "__main__", *EDGES)
        for one in module.imports
        if one.at_once and is_in(one.target, *EDGES)
    ]


def nothing_imports_itself_through_others(modules: Modules) -> list[str]:
    needs = {
        name: sorted(
            {one.target for one in module.imports if one.at_once and one.target in modules}
        )
        for name, module in modules.items()
    }
    ways = [_way_back(start, needs) for start in sorted(modules)]
    # A cycle is named once, from its first module by name.
    return [" imports ".join(way) for way in ways if way and way[0] == min(way)]


def every_module_says_what_it_is_and_is_short(modules: Modules) -> list[str]:
    lines = {name: len(module.text.splitlines()) for name, module in modules.items()}
    return [
        *(f"{n} has no docstring" for n, one in modules.items() if not ast.get_docstring(one.tree)),
        *(f"{name} has {count} lines" for name, count in lines.items() if count > MOST_LINES),
    ]


def _public_names(tree: ast.Module) -> set[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


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
    only_the_connection_knows_apsw_and_its_own_modules,
    nothing_uses_another_sqlite,
    the_base_imports_nothing_above_it,
    parts_do_not_import_each_other,
    parts_do_not_look_up,
    only_the_store_puts_parts_together,
    only_the_store_opens_write_transactions,
    the_facade_knows_no_sql,
    ranking_is_pure,
    embedders_know_no_memories,
    no_transaction_waits_for_an_embedder,
    edges_use_public_names_only,
    nothing_below_needs_an_edge,
    nothing_imports_itself_through_others,
    every_module_says_what_it_is_and_is_short,
]

# The tests ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def modules() -> Modules:
    (place,) = agent_memory.__path__
    return parsed(sources_of(Path(place)))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_library_keeps_the_rule(modules: Modules, rule: Callable[[Modules], list[str]]) -> None:
    assert rule(modules) == []


def test_the_rules_speak_of_modules_that_are_there(modules: Modules) -> None:
    named = {CONNECTION, FACADE, *BASE, *PURE, *NAMED_PARTS, *COMPOSERS, *ours(*OPEN_TO_EDGES)}
    assert named <= modules.keys()
    for package in ("models", "cli", "interchange"):
        assert any(is_in(name, package) for name in modules)


# A small library that keeps every rule.
SOUND = {
    f"{PACKAGE}{name}": f'"""What it is."""\n{code}\n'
    for name, code in {
        "": f"from {PACKAGE}.memory import AgentMemory\n__all__ = ['AgentMemory']",
        ".__main__": f"from {PACKAGE}.cli import main",
        ".errors": "class ValidationError(ValueError): pass",
        ".vocabulary": "LIMIT = 5",
        ".times": "from datetime import UTC",
        ".models": "",
        ".models.memory": f"from {PACKAGE}.vocabulary import LIMIT",
        ".connection": f"import apsw\nfrom {PACKAGE}.connection import opening",
        ".connection.opening": f"import apsw\nfrom {PACKAGE}.errors import ValidationError",
        ".filters": f"from {PACKAGE}.times import UTC",
        ".records": f"from {PACKAGE}.connection import Database\nfrom .filters import Condition",
        ".keyword": f"from {PACKAGE}.connection import Database",
        ".dates": "import re",
        ".evidence": f"import math\nfrom {PACKAGE}.dates import Span",
        ".ranking": f"from {PACKAGE}.evidence import W\nfrom {PACKAGE}.models.memory import LIMIT",
        ".schema": "def upgrade(database):\n    database.write()",
        ".embedders": f"from {PACKAGE}.errors import ValidationError",
        ".embedders.openai": f"from {PACKAGE}.errors import ValidationError",
        ".store": f"from {PACKAGE} import records, keyword\nfrom {PACKAGE}.connection import D",
        ".memory": f"from {PACKAGE}.store import Store",
        ".interchange": "",
        ".interchange.jsonl": f"from {PACKAGE} import AgentMemory",
        ".cli": f"from {PACKAGE}.cli import read\nfrom {PACKAGE}.interchange import jsonl",
        ".cli.read": f"from {PACKAGE} import AgentMemory\nfrom {PACKAGE}.times import UTC",
    }.items()
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_sound_library_keeps_the_rule(rule: Callable[[Modules], list[str]]) -> None:
    assert rule(parsed(SOUND)) == []


def test_there_is_a_planted_violation_of_every_rule() -> None:
    assert set(PLANTED) == set(RULES)


# Rule: module, what is added to it, what the rule says of it; @ is the package.
PLANTED: dict[Callable[[Modules], list[str]], list[tuple[str, str, str]]] = {
    only_the_connection_knows_apsw_and_its_own_modules: [
        ("store", "import apsw", "imports apsw"),
        ("records", "from @.connection import opening", "imports @.connection.opening"),
        ("cli.read", "from apsw.ext import q", "imports apsw.ext"),
        ("memory", "def f():\n    import apsw", "imports apsw"),
    ],
    nothing_uses_another_sqlite: [
        ("connection", "import sqlite3", "imports sqlite3"),
        ("cli", "from sqlite3 import dbapi2", "imports sqlite3"),
        ("times", "__import__('sqlite3')", "imports sqlite3"),
        ("store", "import importlib as i\ni.import_module('sqlite3')", "imports sqlite3"),
    ],
    the_base_imports_nothing_above_it: [
        ("errors", "from . import store", "imports @.store"),
        ("times", "import @.models", "imports @.models"),
        ("models.memory", "from @ import AgentMemory", "imports @"),
        ("models.memory", "from ..ranking import rank", "imports @.ranking"),
    ],
    parts_do_not_import_each_other: [
        ("records", "from @ import keyword", "imports @.keyword"),
        ("filters", "import @.records", "imports @.records"),
        ("vectors", "import @.connection\nfrom @.keyword import terms", "imports @.keyword"),
    ],
    parts_do_not_look_up: [
        ("keyword", "from @.store import Store", "imports @.store"),
        ("records", "from @ import AgentMemory", "imports @"),
    ],
    only_the_store_puts_parts_together: [
        ("cli.read", "import @.records", "imports @.records"),
        ("directory", "import @.store\nimport @.connection", "imports @.connection"),
    ],
    only_the_store_opens_write_transactions: [
        ("records", "def f(d):\n    with d.write():\n        pass", "calls d.write()"),
        ("memory", "store._database.write(wait=True)", "calls store._database.write()"),
    ],
    the_facade_knows_no_sql: [
        ("memory", "from @.connection import Database", "imports @.connection"),
        ("memory", "def f():\n    import @.records", "imports @.records"),
    ],
    ranking_is_pure: [
        ("ranking", "from @.connection import Database", "imports @.connection"),
        ("ranking", "import numpy", "imports numpy"),
        ("evidence", "from @.connection import Database", "imports @.connection"),
        ("evidence", "from @ import records", "imports @.records"),
        ("dates", "from @.nearest import nearest", "imports @.nearest"),
        ("centering", "def f():\n    import numpy", "imports numpy"),
    ],
    embedders_know_no_memories: [
        ("embedders.openai", "from @.models.memory import LIMIT", "imports @.models.memory"),
    ],
    no_transaction_waits_for_an_embedder: [
        ("store", "def f():\n    import @.embedders", "imports @.embedders"),
        ("candidates", '"""What it is."""\nfrom @.meaning import Meaning', "imports @.meaning"),
    ],
    edges_use_public_names_only: [
        ("cli.read", "from @ import keyword", "imports @.keyword"),
        ("cli.read", "from @ import _hidden", "imports @._hidden"),
        ("cli", "from ..store import Store", "imports @.store"),
        ("interchange.jsonl", "import @.cli", "imports @.cli"),
    ],
    nothing_below_needs_an_edge: [("store", "from @.cli import main", "imports @.cli")],
    nothing_imports_itself_through_others: [
        ("connection", "import @.store", "imports @.store imports @.connection"),
        ("times", "import @.times", "imports @.times"),
    ],
    every_module_says_what_it_is_and_is_short: [
        ("bare", "x = 1", "has no docstring"),
        ("errors", "\n" * 518, "has 521 lines"),
    ],
}


@pytest.mark.parametrize(
    ("rule", "module", "code", "problem"),
    [(rule, *plant) for rule, plants in PLANTED.items() for plant in plants],
)
def test_a_planted_violation_is_named(
    rule: Callable[[Modules], list[str]], module: str, code: str, problem: str
) -> None:
    name = f"{PACKAGE}.{module}"
    planted = {**SOUND, name: SOUND.get(name, "") + code.replace("@", PACKAGE) + "\n"}
    assert rule(parsed(planted)) == [f"{name} {problem.replace('@', PACKAGE)}"]


@pytest.mark.parametrize(
    "code",
    [
        f"def later():\n    from {PACKAGE}.store import Store",
        f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import {PACKAGE}.store",
    ],
)
def test_an_import_that_is_made_later_makes_no_cycle(code: str) -> None:
    name = f"{PACKAGE}.connection"
    late = {**SOUND, name: f"{SOUND[name]}\n{code}\n"}
    assert nothing_imports_itself_through_others(parsed(late)) == []
