"""What a host's session is given of an agent's memory, and what is kept of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from agent_memory import (
    FoundSecrets,
    Memory,
    MemoryContextConfig,
    OnSecret,
    RejectedContent,
    SecretFound,
    render_memories,
)
from agent_memory.integrations.context import MemoryContext
from agent_memory.integrations.hosts.journal import ShownMemories
from agent_memory.integrations.hosts.occasion import Occasion, Outcome
from agent_memory.integrations.identity import LazyMemory
from agent_memory.integrations.texts import searchable
from agent_memory.models.limits import VECTOR_DB_FILENAME
from agent_memory.models.times import format_time

if TYPE_CHECKING:
    from agent_memory.integrations.capture import CaptureReport

PAD_TOKENS: Final = 1_200
"""Of the scratchpad, at the start of a session."""
RECENT_TOKENS: Final = 800
"""Of what was last worked on, at the start of a session."""
PROMPT_TOKENS: Final = 700
"""Of what answers a prompt."""
_LONGEST_QUERY: Final = 2_000
"""Characters of a prompt that are searched for: what was pasted comes after what is asked."""
_MOST_HITS: Final = 12
_MOST_RECENT: Final = 8
_LONGEST_SHOWN: Final = 600
"""Characters of a memory that are shown; ``memory_get`` has it whole."""
_EMBEDDER_SECONDS: Final = 0.6
"""After which a provider is not waited for: keywords answer then."""
_SUMMARY_TAG: Final = "session-summary"
_LOST_CONTEXT: Final = ("compact", "clear")
_PLAIN: Final = MemoryContextConfig()


def handle(occasion: Occasion, outcome: Outcome, *, recalls: bool, keeps: bool) -> None:
    """Answer an event, and then keep what is worth keeping of it."""
    with contextlib.closing(_memory_of(occasion)) as memory:
        session = _Session(memory, occasion)
        if recalls:
            kind = occasion.call.event.kind
            context = session.beginning() if kind == "start" else session.recall()
            outcome.counts = session.counts
            outcome.answer(context[: occasion.call.host.most_characters])
        else:
            outcome.answer()
        if keeps and not occasion.is_trial:
            outcome.counts = {**session.counts, **session.capture()}
            outcome.why = session.why


def _memory_of(occasion: Occasion) -> LazyMemory:
    """Return the memory, which is opened, and made, when something is recalled or kept."""
    return LazyMemory(
        occasion.agent_id,
        root=occasion.call.root,
        session_id=occasion.label,
        config={"embedding_timeout_seconds": _EMBEDDER_SECONDS},
        read_only=occasion.is_trial,
        create=not occasion.is_trial,
    )


class _Session:
    """One session of a host, and the memory of its agent."""

    def __init__(self, memory: LazyMemory, occasion: Occasion) -> None:
        self._memory = memory
        self._occasion = occasion
        self.counts: dict[str, int] = {}
        self.why = ""
        """Why something could not be kept; an empty text if all could."""

    @property
    def _is_noted(self) -> bool:
        """Whether what is given is noted: not where sessions cannot be told from each other."""
        return bool(self._occasion.session) and not self._occasion.is_trial

    # Recall ---------------------------------------------------------------------------------------

    def beginning(self) -> str:
        """Return what a session begins with: the scratchpad, and what was last worked on."""
        with self._shown() as shown:
            if self._occasion.source in _LOST_CONTEXT and self._is_noted:
                shown.forget()
            pad = "" if shown.ids else MemoryContext(self._memory, config=_PLAIN).text(PAD_TOKENS)
            pad_ids = _ids_in(pad)
            known = shown.ids.union(pad_ids)
            recent = [
                memory
                for memory in self._memory().list_recent(_MOST_RECENT + len(known))
                if memory.id not in known and memory.created_by_session != self._occasion.label
            ][:_MOST_RECENT]
            latest = self._render(recent, RECENT_TOKENS)
            self._note(shown, [*pad_ids, *_ids_in(latest)])
        parts = [pad, latest and f"Stored last in this project, newest first:\n\n{latest}"]
        return self._headed([part for part in parts if part])

    def recall(self) -> str:
        """Return what answers a prompt, and was not given to this session before."""
        results = self._memory().search(
            self._occasion.text[:_LONGEST_QUERY],
            _MOST_HITS,
            include_weak=False,
            count_accesses=False,
        )
        with self._shown() as shown:
            new = [hit.memory for hit in results if self._is_new(hit.memory, shown)]
            text = self._render(new, PROMPT_TOKENS)
            ids = _ids_in(text)
            self._note(shown, ids)
        left_out = len(new) - len(ids)
        self.counts["left_out"] = left_out
        if left_out:
            text += f"{left_out} more match and did not fit: memory_search finds them.\n"
        return self._headed([text] if text else [])

    def _shown(self) -> AbstractContextManager[ShownMemories]:
        shown = ShownMemories(
            self._occasion.folder, self._occasion.call.host.name, self._occasion.session
        )
        return shown if self._is_noted else contextlib.nullcontext(shown)

    def _is_new(self, memory: Memory, shown: ShownMemories) -> bool:
        """Return whether a session does not know a memory: what it stored itself, it knows."""
        if memory.id in shown.ids:
            return False
        if memory.created_by_session != self._occasion.label:
            return True
        is_lost = format_time(memory.timestamp) < shown.compacted_at
        return is_lost and _SUMMARY_TAG not in memory.tags

    def _note(self, shown: ShownMemories, memory_ids: Sequence[str]) -> None:
        self.counts["recalled"] = len(memory_ids)
        if self._is_noted:
            shown.add(memory_ids)

    def _render(self, memories: Iterable[Memory], tokens: int) -> str:
        shortened = [_shortened(memory) for memory in memories]
        return render_memories(shortened, tokens, config=_PLAIN, agent_id=self._occasion.agent_id)

    def _headed(self, parts: list[str]) -> str:
        """Return parts under a line that says whose memories they are, and where they lie."""
        if not parts:
            return ""
        place = os.path.join(self._occasion.folder, VECTOR_DB_FILENAME)
        return "\n".join([f"Memory of agent {self._occasion.agent_id} ({place}):\n", *parts])

    # Capture --------------------------------------------------------------------------------------

    def capture(self) -> dict[str, int]:
        """Keep what an event says, by rules; return how much was stored, refused and dropped."""
        kind = self._occasion.call.event.kind
        if kind == "summary":
            return self._keep_summary()
        from agent_memory.integrations.capture import MemoryCapture  # noqa: PLC0415 - 20 ms

        capture = MemoryCapture(
            self._memory, session_id=self._occasion.label, config={"async_capture": False}
        )
        with capture, _logged("agent_memory.capture") as reasons:
            if kind == "tool":
                capture.tool_output(self._occasion.tool, self._occasion.content)
            else:
                capture.turn(self._occasion.text, "user" if kind == "prompt" else "assistant")
        self.why = "; ".join(reasons)
        return _counts_of(capture.report)

    def _keep_summary(self) -> dict[str, int]:
        """Keep the summary that a host made of a conversation, without what it had been given."""
        with self._shown() as shown:
            recalled = [self._memory().get(memory_id) for memory_id in sorted(shown.ids)]
        text = self._occasion.text
        for memory in recalled:
            if memory is not None:
                text = text.replace(memory.content, "")
        try:
            memory_id = self._memory().store(
                searchable(text, name="A session was compacted."),
                tags=[_SUMMARY_TAG],
                metadata={"source": f"{self._occasion.call.host.name}:compact",
                          "auto_captured": True},
                on_duplicate="merge",
                on_secret=_masked_or_refused,
            )  # fmt: skip
        except (SecretFound, RejectedContent):
            return {"refused": 1}
        self._memory().demote(memory_id)  # in the scratchpad it would leave no room for others
        return {"captured": 1}


@contextlib.contextmanager
def _logged(logger: str) -> Iterator[list[str]]:
    """Yield what is logged while the body runs."""
    import logging  # noqa: PLC0415 - seldom needed

    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger(logger).addHandler(handler)
    try:
        yield messages
    finally:
        logging.getLogger(logger).removeHandler(handler)


def _counts_of(report: CaptureReport) -> dict[str, int]:
    counts = {
        "captured": report.stored,
        "known": report.duplicates + report.echoes,
        "refused": report.refused,
        "dropped": report.dropped + report.failed + report.over_limit + report.unread,
    }
    return {name: count for name, count in counts.items() if count}


def _masked_or_refused(secrets: FoundSecrets) -> str:
    """Mask what nobody looked at before it was stored, unless the file's setting refuses it."""
    return OnSecret.REFUSE if secrets.decision is OnSecret.REFUSE else OnSecret.MASK


def _shortened(memory: Memory) -> Memory:
    if len(memory.content) <= _LONGEST_SHOWN:
        return memory
    begin = f"{memory.content[:_LONGEST_SHOWN]}… ({len(memory.content):,} characters: memory_get)"
    return memory.model_copy(update={"content": begin})


def _ids_in(text: str) -> list[str]:
    """Return the ids of the memories that a rendered text shows: each line ends with its source."""
    sources = [
        line.rpartition("{")[2] for line in text.splitlines()
        if line.startswith("- ") and line.endswith("}")
    ]  # fmt: skip
    return [source.partition(" by ")[0] for source in sources]
