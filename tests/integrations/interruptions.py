"""A memory in which others write at the worst moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_memory import AgentMemory


class Interrupted(AgentMemory):
    """A memory in which something happens before the next write, as by another process."""

    def before(self, happens: Callable[[], object]) -> None:
        self._happens = [happens]

    def _let_it(self) -> None:
        while waiting := self.__dict__.get("_happens"):
            waiting.pop()()

    def store(self, *given: Any, **fields: Any) -> str:
        self._let_it()
        return super().store(*given, **fields)

    def store_many(self, *given: Any, **fields: Any) -> list[str]:
        self._let_it()
        return super().store_many(*given, **fields)

    def update(self, *given: Any, **fields: Any) -> Any:
        self._let_it()
        return super().update(*given, **fields)

    def delete_many(self, *given: Any, **fields: Any) -> Any:
        self._let_it()
        return super().delete_many(*given, **fields)
