"""Opening and closing a memory: what ``AgentMemory`` is given, and what it is made of."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from agent_memory.api import arguments as inputs
from agent_memory.api.arguments import Clock, Time, validated
from agent_memory.embeddings import EmbedderSpec, EmbeddingUsage
from agent_memory.errors import ConfigurationError
from agent_memory.models.config import MemoryContextConfig, MemoryToolConfig
from agent_memory.models.protocols import SecretScanner
from agent_memory.models.times import now_utc, to_utc
from agent_memory.runtime import paths
from agent_memory.runtime.files import tighten_folder
from agent_memory.services.embedding.auto_migration import Mover
from agent_memory.services.embedding.choice import settings_of
from agent_memory.services.embedding.service import Meaning
from agent_memory.services.events import Events, Listener
from agent_memory.services.store import Store

if TYPE_CHECKING:
    from agent_memory.api.graph import MemoryGraph


class OpenMemory:
    """An open file of memories, with its settings; ``AgentMemory`` adds the verbs."""

    def __init__(
        self,
        agent_id: str,
        *,
        root: str | os.PathLike[str] | None = None,
        session_id: str | None = None,
        embedder: EmbedderSpec = "auto",
        config: MemoryToolConfig | Mapping[str, Any] | None = None,
        context_config: MemoryContextConfig | Mapping[str, Any] | None = None,
        clock: Clock = now_utc,
        create: bool = True,
        read_only: bool = False,
        synchronous: str = "FULL",
        secret_scanner: SecretScanner | None = None,
        on_event: Listener | None = None,
        event_text: bool = False,
    ) -> None:
        tool_config = validated(MemoryToolConfig, config)
        if root is None and "storage_root" in tool_config.model_fields_set:
            root = tool_config.storage_root
        self._start(
            path := paths.database_path(agent_id, root),
            agent_id=agent_id,
            session_id=session_id,
            embedder=embedder,
            config=tool_config,
            context_config=context_config,
            clock=clock,
            create=create,
            read_only=read_only,
            synchronous=synchronous,
            secret_scanner=secret_scanner,
            on_event=on_event,
            event_text=event_text,
        )
        tighten_folder(path.parent)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        agent_id: str | None = None,
        session_id: str | None = None,
        embedder: EmbedderSpec = "auto",
        config: MemoryToolConfig | Mapping[str, Any] | None = None,
        context_config: MemoryContextConfig | Mapping[str, Any] | None = None,
        clock: Clock = now_utc,
        create: bool = True,
        read_only: bool = False,
        synchronous: str = "FULL",
        secret_scanner: SecretScanner | None = None,
        on_event: Listener | None = None,
        event_text: bool = False,
    ) -> Self:
        """Open a file anywhere; it is made if there is none.

        The file says whose it is; ``agent_id`` names the agent of a new one (else ``agent``), and
        is checked against that of an old one.
        """
        memory = cls.__new__(cls)
        memory._start(
            paths.resolve_file(path),
            agent_id=agent_id,
            session_id=session_id,
            embedder=embedder,
            config=validated(MemoryToolConfig, config),
            context_config=context_config,
            clock=clock,
            create=create,
            read_only=read_only,
            synchronous=synchronous,
            secret_scanner=secret_scanner,
            on_event=on_event,
            event_text=event_text,
        )
        return memory

    def _start(
        self,
        path: Path,
        *,
        agent_id: str | None,
        session_id: str | None,
        embedder: EmbedderSpec,
        config: MemoryToolConfig,
        context_config: MemoryContextConfig | Mapping[str, Any] | None,
        clock: Clock,
        create: bool,
        read_only: bool,
        synchronous: str,
        secret_scanner: SecretScanner | None,
        on_event: Listener | None = None,
        event_text: bool = False,
    ) -> None:
        self._clock = clock
        self._config = config
        self._settings: dict[str, Any] = {
            "session_id": session_id,
            "embedder": embedder,
            "config": config,
            "context_config": context_config,
            "clock": clock,
            "synchronous": synchronous,
            "secret_scanner": secret_scanner,
        }
        self._secret_scanner = secret_scanner
        self._context_config = validated(MemoryContextConfig, context_config)
        self.session_id = self._settings["session_id"] = inputs.session_name(session_id)
        # Without the model that is set, which would make another embedder's file OpenAI's.
        spec = inputs.embedder_spec(embedder, MemoryToolConfig.defaults())
        self._store = Store(
            path,
            agent_id=agent_id,
            clock=self._now,
            create=create,
            read_only=read_only,
            synchronous=synchronous,
            promotion_threshold=self._context_config.promotion_access_threshold,
        )
        self.agent_id = self._store.agent_id
        self.path = path
        self._meaning = Meaning(
            self._store.vectors,
            spec,
            settings=lambda: settings_of(config, self._store.config()),
            timeout_seconds=config.embedding_timeout_seconds,
            cache_ttl_seconds=config.cache_ttl_seconds if config.enable_caching else 0,
        )
        self._events = Events(
            path,
            agent_id=self.agent_id,
            session_id=self.session_id,
            clock=self._now,
            setting=lambda: self._store.config().event_log,
            listener=on_event,
            with_text=event_text,
            writable=not read_only,
        )
        self._store.when_promoted(self._events.promoted)
        self._mover = Mover(self._store, self._meaning, config, self._events)

    @cached_property
    def graph(self) -> MemoryGraph:
        """Whom and what the memories speak of, and what holds between them, and when."""
        from agent_memory.api.graph import MemoryGraph  # noqa: PLC0415 - made when it is first used

        return MemoryGraph(self._store.graph, self.path)

    @property
    def embedding_usage(self) -> EmbeddingUsage:
        """What was embedded through this object: requests, texts, tokens, dollars."""
        return self._meaning.usage

    def close(self) -> None:
        """Close the file. What ``store`` returned from is safe without it."""
        self._mover.stop()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def _as_of(self, moment: Time) -> Iterator[Self]:
        """Give the body a memory that is as this one was at a moment; it goes with the body."""
        when = inputs.moment("as_of", moment)
        with (
            self._store.exchange.copy_as_of(when) as copy,
            self.open(copy, agent_id=self.agent_id, create=False, **self._settings) as past,
        ):
            yield past

    def _categories(self) -> list[str]:
        return self._store.config().categories

    def __repr__(self) -> str:
        return f"AgentMemory({self.agent_id!r}, path={str(self.path)!r})"

    def _now(self) -> datetime:
        now = self._clock()
        if not isinstance(now, datetime):
            raise ConfigurationError(f"the clock must return a datetime, not {now!r:.80}")
        return to_utc(now)
