"""The memories of an agent without the models, where that suffices for what is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from agent_memory.integrations.hosts.journal import agent_folder, is_anything_heard

if TYPE_CHECKING:
    from agent_memory import MemoryReader

Answer = TypeVar("Answer")


def asked(
    what: Callable[[MemoryReader], Answer], agent: str, root: str | None, *, by_keyword: bool
) -> Answer | None:
    """Ask the reader of an agent's memories; ``None`` where it cannot answer, or not as usual.

    ``by_keyword`` says that no search is asked for, or only by keyword.
    """
    from agent_memory import AgentMemoryError, MemoryReader  # noqa: PLC0415 - of this alone

    try:
        if is_anything_heard(agent_folder(agent, root)):
            return None
        reader = MemoryReader.open(agent, root=root, by_keyword=by_keyword)
        if reader is None:
            return None
        with reader:
            return what(reader)
    except (AgentMemoryError, OSError, ValueError):
        return None  # it will be said by what is tried then
