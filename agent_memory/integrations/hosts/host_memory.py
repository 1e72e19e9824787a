"""Stores what hooks heard, and answers hooks that need all of the library."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from agent_memory import (
    AgentMemory,
    AgentMemoryError,
    MemoryCaptureConfig,
    MemoryExcerpt,
    OnSecret,
    RejectedContent,
    StorageError,
)
from agent_memory.integrations.capture.capture import is_our_tool, source_of_tool
from agent_memory.integrations.capture.observations import scan
from agent_memory.integrations.capture.writer import Counts, ObservationWriter
from agent_memory.integrations.hosts.occasion import SUMMARY_TAG, Occasion
from agent_memory.integrations.identity import LazyMemory
from agent_memory.integrations.texts import searchable
from agent_memory.models.limits import MAX_MEMORY_CONTENT_LENGTH
from agent_memory.models.times import now_utc, parse_time
from agent_memory.text.secrets import MASK

_RULES: Final = MemoryCaptureConfig()
_EMBEDDER_SECONDS: Final = 0.6
"""How long to wait for a provider; after that, keywords answer."""

_TOO_LONG: Final = f"a sentence of over {MAX_MEMORY_CONTENT_LENGTH:,} characters is not kept"


class HostMemory(LazyMemory):
    """A host's agent's memory, with a ``MemoryReader``'s methods, for when that cannot answer."""

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
        """Return what answers a query, without weak hits that only fill up the limit."""
        hits = self().search(query, limit, include_weak=False, count_accesses=False)
        return [
            MemoryExcerpt.of(hit.memory)._replace(under_review=hit.under_review) for hit in hits
        ]

    def list_recent(self, limit: int) -> list[MemoryExcerpt]:
        """Return the newest memories."""
        recent = self().list_recent(limit)
        under_review = self().under_review(memory.id for memory in recent)
        return [
            MemoryExcerpt.of(memory)._replace(under_review=memory.id in under_review)
            for memory in recent
        ]

    def context(self, token_budget: int) -> str:
        """Return the scratchpad as Markdown."""
        return self().context(token_budget)


class Keeper:
    """Stores what hooks heard, by rules, in an agent's memory, which is opened for the first text.

    ``is_stuck`` says whether the store failed: what was not kept may be kept later.
    """

    def __init__(self, agent_id: str, root: str | None) -> None:
        self._memory = LazyMemory(agent_id, root=root, clock=self._clock)
        self._said_at: datetime | None = None
        self.is_stuck = False

    def keep(self, entry: Mapping[str, Any]) -> tuple[dict[str, int], str]:
        """Store an entry of a ``Spool``; return the counts for the log.

        The second value is why something could not be stored, or an empty string. Memories get the
        time at which the entry was heard, which may be long ago.
        """
        self._said_at = _time_of(entry)
        try:
            if entry["kind"] == "summary":
                return self._keep_summary(entry), ""
            return self._capture(entry)
        except (AgentMemoryError, OSError) as error:
            self.is_stuck = isinstance(error, StorageError | OSError)
            return {} if self.is_stuck else {"dropped": 1}, f"{type(error).__name__}: {error}"
        except (KeyError, TypeError, ValueError) as error:  # of another version
            return {"dropped": 1}, type(error).__name__

    def _clock(self) -> datetime:
        now = now_utc()
        return min(now, self._said_at or now)  # if the clock was set back

    def close(self) -> None:
        """Close the memory."""
        self._said_at = None
        self._memory.close()

    def _capture(self, entry: Mapping[str, Any]) -> tuple[dict[str, int], str]:
        kind, tool = entry["kind"], entry["tool"]
        if kind == "tool" and is_our_tool(tool):
            return {}, ""
        speaker = "turn:user" if kind == "prompt" else "turn:assistant"
        source = source_of_tool(tool) if kind == "tool" else speaker
        counts = Counts()
        most = _RULES.max_captures_per_session
        writer = ObservationWriter(self._memory, counts, most=most, is_patient=False)
        reasons: list[str] = []
        for text in entry["texts"]:
            scanned = scan(text, source=source, session_id=entry["session"], config=_RULES)
            for observation in scanned.observations:
                if MASK in observation.content and self._refuses_secrets():
                    counts.add("refused")
                else:
                    writer.keep(observation)
            if scanned.is_cut:
                counts.add("over_limit")
                reasons = [_TOO_LONG]
        self.is_stuck = writer.is_stuck
        reasons += writer.reasons
        return _counts_of(counts, is_stuck=self.is_stuck), "; ".join(reasons)

    def _keep_summary(self, entry: Mapping[str, Any]) -> dict[str, int]:
        """Store the summary that a host made of a conversation, without what had been recalled."""
        memory = self._memory()
        (text,) = entry["texts"]
        if MASK in text and self._refuses_secrets():
            return {"refused": 1}
        for memory_id in entry["shown"]:
            shown_memory = memory.get(memory_id)
            if shown_memory is not None:
                text = text.replace(shown_memory.content, "")
        try:
            memory_id = memory.store(
                searchable(text, name="A session was compacted."),
                tags=[SUMMARY_TAG],
                session_id=entry["session"],
                metadata={"source": f"{entry['host']}:compact", "auto_captured": True},
                on_duplicate="merge",
                on_secret=OnSecret.MASK,
            )
        except RejectedContent:
            return {"refused": 1}
        memory.demote(memory_id)  # in the scratchpad it would crowd out others
        return {"captured": 1}

    def _refuses_secrets(self) -> bool:
        """Return whether the file's setting refuses texts in which a secret was masked."""
        memory = self._memory()
        assert isinstance(memory, AgentMemory)  # noqa: S101 - no session was requested
        return OnSecret(memory.info().config.on_secret) is OnSecret.REFUSE


def _time_of(entry: Mapping[str, Any]) -> datetime | None:
    try:
        return parse_time(str(entry.get("at")))
    except ValueError:  # of another version
        return None


def _counts_of(counts: Counts, *, is_stuck: bool) -> dict[str, int]:
    named = {
        "captured": counts["stored"],
        "known": counts["duplicates"] + counts["echoes"],
        "refused": counts["refused"],
        "dropped": counts["over_limit"] + (0 if is_stuck else counts["failed"]),
    }
    return {name: count for name, count in named.items() if count}
