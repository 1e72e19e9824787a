"""What is kept of a host's session, and a session's memory where all of the library is needed."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Final

from agent_memory import (
    FoundSecrets,
    MemoryExcerpt,
    OnSecret,
    RejectedContent,
    SecretFound,
)
from agent_memory.integrations.capture import CaptureReport, MemoryCapture
from agent_memory.integrations.hosts.journal import shown_to
from agent_memory.integrations.hosts.occasion import SUMMARY_TAG, Occasion
from agent_memory.integrations.identity import LazyMemory
from agent_memory.integrations.texts import searchable

_EMBEDDER_SECONDS: Final = 0.6
"""After which a provider is not waited for: keywords answer then."""


class HostMemory(LazyMemory):
    """The memory of a host's agent, opened, and made, when something is recalled or kept."""

    def __init__(self, occasion: Occasion) -> None:
        super().__init__(
            occasion.agent_id,
            root=occasion.call.root,
            session_id=occasion.label,
            config={"embedding_timeout_seconds": _EMBEDDER_SECONDS},
            read_only=occasion.is_trial,
            create=not occasion.is_trial,
        )

    def search(self, query: str, limit: int) -> list[MemoryExcerpt]:
        """Return what answers a query, without what only fills up the limit."""
        hits = self().search(query, limit, include_weak=False, count_accesses=False)
        return [MemoryExcerpt.of(hit.memory) for hit in hits]

    def list_recent(self, limit: int) -> list[MemoryExcerpt]:
        """Return the newest memories."""
        return [MemoryExcerpt.of(memory) for memory in self().list_recent(limit)]

    def context(self, token_budget: int) -> str:
        """Return the scratchpad as Markdown."""
        return self().context(token_budget)


def keep(occasion: Occasion) -> tuple[dict[str, int], str]:
    """Keep what an event says, by rules; return how much was stored, refused and dropped, and why.

    The second is why something could not be kept; an empty text if all could.
    """
    with contextlib.closing(HostMemory(occasion)) as memory:
        if occasion.call.event.kind == "summary":
            return _keep_summary(occasion, memory), ""
        return _capture(occasion, memory)


def _capture(occasion: Occasion, memory: LazyMemory) -> tuple[dict[str, int], str]:
    kind = occasion.call.event.kind
    capture = MemoryCapture(memory, session_id=occasion.label, config={"async_capture": False})
    with capture, _logged("agent_memory.capture") as reasons:
        if kind == "tool":
            capture.tool_output(occasion.tool, occasion.content)
        else:
            capture.turn(occasion.text, "user" if kind == "prompt" else "assistant")
    return _counts_of(capture.report), "; ".join(reasons)


def _keep_summary(occasion: Occasion, memory: LazyMemory) -> dict[str, int]:
    """Keep the summary that a host made of a conversation, without what it had been given."""
    with shown_to(occasion) as shown:
        recalled = [memory().get(memory_id) for memory_id in sorted(shown.ids)]
    text = occasion.text
    for shown_memory in recalled:
        if shown_memory is not None:
            text = text.replace(shown_memory.content, "")
    try:
        memory_id = memory().store(
            searchable(text, name="A session was compacted."),
            tags=[SUMMARY_TAG],
            metadata={"source": f"{occasion.call.host.name}:compact", "auto_captured": True},
            on_duplicate="merge",
            on_secret=_masked_or_refused,
        )
    except (SecretFound, RejectedContent):
        return {"refused": 1}
    memory().demote(memory_id)  # in the scratchpad it would leave no room for others
    return {"captured": 1}


@contextlib.contextmanager
def _logged(logger: str) -> Iterator[list[str]]:
    """Yield what is logged while the body runs."""
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
