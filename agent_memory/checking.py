"""Looking for damage and drift in a whole file, and mending it, by the checks of its parts."""

from __future__ import annotations

import contextlib
from pathlib import Path

from agent_memory import agent, integrity, schema, vector_checks
from agent_memory.connection import Database
from agent_memory.errors import StorageCorrupt
from agent_memory.models.agent import CheckReport, Problem


def check(database: Database, path: Path, *, mend: bool) -> CheckReport:
    """Look for what is wrong, mend it if asked to, and report."""
    problems = _problems(database)
    if problems and mend:
        with contextlib.suppress(StorageCorrupt), database.write():
            integrity.repair(database, schema.objects())
            agent.repair(database)
            vector_checks.repair(database)
        left = {problem.detail for problem in _problems(database)}
        problems = [
            problem.model_copy(update={"repaired": problem.detail not in left})
            for problem in problems
        ]
    total = integrity.count_memories(database)
    return CheckReport(path=str(path), memory_count=total, problems=problems)


def _problems(database: Database) -> list[Problem]:
    """Look for what is wrong, keeping writers out for as short as can be."""
    problems: list[Problem] = []
    try:
        with database.read():
            problems += integrity.find_problems(database, schema.objects())
            problems += agent.find_problems(database)
            problems += vector_checks.find_problems(database)
        with database.write():
            problems += integrity.compare_index(database)
    except StorageCorrupt as error:
        problems.append(Problem(kind="damaged_file", detail=str(error)))
    return problems
