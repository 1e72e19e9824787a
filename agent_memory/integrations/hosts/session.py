"""What a host's session is given from an agent's memory.

A host waits for this at every prompt: nothing is imported here that a search does not need.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from agent_memory import MemoryExcerpt, MemoryReader, render_memories
from agent_memory.integrations.hosts.journal import ShownMemories, shown_to
from agent_memory.integrations.hosts.occasion import SUMMARY_TAG, Occasion, Outcome
from agent_memory.models.limits import ROOT_VARIABLE, SERVER_ADDRESS, VECTOR_DB_FILENAME
from agent_memory.models.times import format_time
from agent_memory.text.truncation import both_ends

if TYPE_CHECKING:
    from agent_memory.integrations.hosts.host_memory import HostMemory

PAD_TOKENS: Final = 1_200
"""For the scratchpad, at the start of a session."""
RECENT_TOKENS: Final = 800
"""For what was last worked on, at the start of a session."""
PROMPT_TOKENS: Final = 700
"""For what answers a prompt."""
_LONGEST_QUERY: Final = 2_000
"""Characters of a prompt that are searched for, half at each end."""
_MOST_HITS: Final = 12
_MOST_RECENT: Final = 8
_LONGEST_SHOWN: Final = 600
"""Characters of a memory that are shown; ``memory_get`` returns all of it."""
_LOST_CONTEXT: Final = ("compact", "clear")


def recall(occasion: Occasion, outcome: Outcome) -> None:
    """Answer the start of a session, or a prompt."""
    with contextlib.closing(_readable(occasion)) as memory:
        recalled = _Recall(memory, occasion)
        is_start = occasion.call.event.kind == "start"
        context = recalled.beginning() if is_start else recalled.answer()
        outcome.counts = {**outcome.counts, **recalled.counts}
        outcome.why = recalled.why
        outcome.answer(context[: occasion.call.host.most_characters])


def _readable(occasion: Occasion) -> MemoryReader | HostMemory:
    """Open the memory for reading, by the quick reader if that can answer."""
    root, is_trial = occasion.call.root, occasion.is_trial
    is_start = occasion.call.event.kind == "start"  # which does not search
    reader = MemoryReader.open(
        occasion.agent_id, root=root, read_only=is_trial, by_keyword=is_start
    )
    if reader is not None:
        return reader
    from agent_memory.integrations.hosts.host_memory import HostMemory  # noqa: PLC0415 - 100 ms

    return HostMemory(occasion)


class _Recall:
    """What one session of a host is given, and how much more there is."""

    def __init__(self, memory: MemoryReader | HostMemory, occasion: Occasion) -> None:
        self._memory = memory
        self._occasion = occasion
        self.counts: dict[str, int] = {}
        self.why = ""
        """Why what is given could not be noted; an empty text where it was."""

    def beginning(self) -> str:
        """Return what a session starts with: the scratchpad, and what was last worked on."""
        with shown_to(self._occasion) as shown:
            if self._occasion.source in _LOST_CONTEXT and self._occasion.is_noted:
                shown.forget()
            pad = "" if shown.ids else self._memory.context(PAD_TOKENS)
            pad_ids = _ids_in(pad)
            known = shown.ids.union(pad_ids)
            recent = [
                memory
                for memory in self._memory.list_recent(_MOST_RECENT + len(known))
                if memory.id not in known and memory.created_by_session != self._occasion.label
            ][:_MOST_RECENT]
            latest = self._render(recent, RECENT_TOKENS)
            self._note(shown, [*pad_ids, *_ids_in(latest)])
        parts = [pad, latest and f"Stored last in this project, newest first:\n\n{latest}"]
        return self._headed([part for part in parts if part])

    def answer(self) -> str:
        """Return what answers a prompt and was not given to this session before."""
        hits = self._memory.search(both_ends(self._occasion.text, _LONGEST_QUERY), _MOST_HITS)
        with shown_to(self._occasion) as shown:
            new = [hit for hit in hits if self._is_new(hit, shown)]
            text = self._render(new, PROMPT_TOKENS)
            ids = _ids_in(text)
            self._note(shown, ids)
        left_out = len(new) - len(ids)
        self.counts["left_out"] = left_out
        if left_out:
            text += f"{left_out} more match and did not fit: memory_search finds them.\n"
        return self._headed([text] if text else [])

    def _is_new(self, memory: MemoryExcerpt, shown: ShownMemories) -> bool:
        """Return whether a memory is new to a session; those that it stored itself are not."""
        if memory.id in shown.ids:
            return False
        if memory.created_by_session != self._occasion.label:
            return True
        is_lost = format_time(memory.timestamp) < shown.compacted_at
        return is_lost and SUMMARY_TAG not in memory.tags

    def _note(self, shown: ShownMemories, memory_ids: Sequence[str]) -> None:
        self.counts["recalled"] = len(memory_ids)
        if self._occasion.is_noted:
            shown.add(memory_ids)
        self.why = shown.why

    def _render(self, memories: Iterable[MemoryExcerpt], tokens: int) -> str:
        shortened = [_shortened(memory) for memory in memories]
        return render_memories(shortened, tokens, agent_id=self._occasion.agent_id)

    def _headed(self, parts: list[str]) -> str:
        """Return parts under a line that names the agent, and its file or database."""
        if not parts:
            return ""
        agent_id, root = self._occasion.agent_id, self._occasion.call.root
        place = os.path.join(self._occasion.folder, VECTOR_DB_FILENAME)
        chosen = root or os.environ.get(ROOT_VARIABLE) or ""
        if SERVER_ADDRESS.match(chosen):
            from agent_memory.runtime.addresses import server_address  # noqa: PLC0415

            place = server_address(chosen).location  # without a password
        return "\n".join([f"Memory of agent {agent_id} ({place}):\n", *parts])


def _shortened(memory: MemoryExcerpt) -> MemoryExcerpt:
    if len(memory.content) <= _LONGEST_SHOWN:
        return memory
    begin = f"{memory.content[:_LONGEST_SHOWN]}… ({len(memory.content):,} characters: memory_get)"
    return memory._replace(content=begin)


def _ids_in(text: str) -> list[str]:
    """Return the ids of the memories in a rendered text: each line ends with its source."""
    sources = [
        line.rpartition("{")[2] for line in text.splitlines()
        if line.startswith("- ") and line.endswith("}")
    ]  # fmt: skip
    return [source.partition(" by ")[0] for source in sources]
