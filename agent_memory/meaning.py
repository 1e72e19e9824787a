"""What a memory knows of meaning: its embedder beside the vectors in its file.

Nothing here lets a search or a store fail or hang. A provider is waited for so long and no longer;
one that failed is left alone for a while; meanwhile memories are found by keyword, and wait.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from agent_memory.embedders import (
    CheckedEmbedder,
    EmbedderChain,
    EmbedderSpec,
    EmbeddingRefused,
    EmbeddingUsage,
    create_embedder,
)
from agent_memory.errors import AgentMemoryError, ConfigurationError, EmbeddingError, StorageError
from agent_memory.models.embedding import EmbeddingModel, PendingText
from agent_memory.nearest import QueryMeaning, QueryVector
from agent_memory.quantization import quantize
from agent_memory.vector_store import VectorState, VectorStore

Result = TypeVar("Result")

LOADING_SECONDS: Final = 60.0
"""How long a local model may take to load."""
REST_SECONDS: Final = 30.0
"""How long a provider that failed is left alone: a thousand stores must not each wait for it."""
_FEW: Final = 10
"""Vectors that may be made again after a power cut rather than waited for."""


class Meaning:
    """The embedder of one open memory. Threads may share it.

    ``spec`` says which embedder is wanted; ``"auto"`` is the one that made the file's vectors.
    ``timeout_seconds`` is how long a search, and a store after its commit, wait for it.
    """

    def __init__(
        self,
        vectors: VectorStore,
        spec: EmbedderSpec,
        *,
        timeout_seconds: float,
        cache_ttl_seconds: float,
    ) -> None:
        self._vectors = vectors
        self._spec = spec
        self._timeout = timeout_seconds
        self._cache_ttl = cache_ttl_seconds
        self._lock = threading.Lock()
        self._start_anew()

    def _start_anew(self) -> None:
        self._pid = os.getpid()
        self._embedder: CheckedEmbedder | None = None
        self._stuck: threading.Thread | None = None
        self._resting_until = 0.0
        self._resting_because = ""
        self._refused: set[int] = set()

    def _leave_parent(self) -> None:
        """After ``fork``: a connection to a service cannot be shared with the parent."""
        if os.getpid() != self._pid:
            self._lock = threading.Lock()
            self._start_anew()

    @property
    def usage(self) -> EmbeddingUsage:
        """Return what was embedded through this memory, and its price."""
        return EmbeddingUsage() if self._embedder is None else self._embedder.usage

    # Searching --------------------------------------------------------------------------------

    def of_query(self, query: str) -> QueryMeaning:
        """Return a query's vector, having caught up with what waits, within the timeout."""
        state = self._vectors.state()
        if state.active is None:
            return QueryMeaning()
        started = time.perf_counter()
        try:
            vector = self._query_vector(state.active, query)
        except (EmbeddingError, ConfigurationError) as error:
            return QueryMeaning(
                None, [f"searched by keyword only: {error}"], (time.perf_counter() - started) * 1000
            )
        if state.lacks_index:
            self._restore_index_quietly()
        left = self._timeout - (time.perf_counter() - started)
        waiting = self._catch_up_quietly(state, seconds=left) if state.is_behind else ""
        milliseconds = (time.perf_counter() - started) * 1000
        return QueryMeaning(vector, [waiting] if waiting else [], milliseconds)

    def _query_vector(self, model: EmbeddingModel, query: str) -> QueryVector | None:
        if not query.strip():
            return None
        embedder = self._embedder_of(model)
        (vector,) = self._within(self._timeout, lambda: embedder.embed([query]))
        _refuse_other_size(len(vector), model)
        return QueryVector(model, quantize(vector).data)

    def _catch_up_quietly(self, state: VectorState, *, seconds: float) -> str:
        """Embed one batch of what waits; return what is to be said of the rest."""
        if self._vectors.read_only or self._is_resting():
            return self._waiting()
        try:
            pending = self._vectors.settle(self._batch_size(), patient=False)
            wanted = [text for text in pending if text.seq not in self._refused]
            if wanted and state.active is not None and seconds > 0:
                self._embed(state.active, wanted, seconds=seconds, patient=False)
            return self._waiting() if pending else ""
        except (EmbeddingError, ConfigurationError, StorageError) as error:
            _log("embeddings are made later: %s", error)
            return self._waiting()

    def _restore_index_quietly(self) -> None:
        """Build an index that is missing: that needs no embedder."""
        try:
            self._vectors.restore_indexes(patient=False)
        except StorageError as error:
            _log("the index is built later: %s", error)

    def _waiting(self) -> str:
        waiting = self._vectors.count_pending()
        if not waiting:
            return ""
        return f"{waiting} memories are not embedded yet: they are found by keyword"

    def _batch_size(self) -> int:
        return 100 if self._embedder is None else self._embedder.batch_size

    # Storing ----------------------------------------------------------------------------------

    def follow(self) -> None:
        """Embed what was just stored or changed, if vectors are in use. It never fails."""
        if self._spec is None or self._is_resting():
            return
        try:
            while (state := self._vectors.state()).active is not None and state.is_behind:
                pending = self._vectors.settle(self._batch_size())
                wanted = [text for text in pending if text.seq not in self._refused]
                if not wanted or not self._embed(state.active, wanted, seconds=self._timeout):
                    return
        except (EmbeddingError, ConfigurationError, StorageError) as error:
            _log("embeddings are made later: %s", error)

    def catch_up(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed all that waits, and return how many that were.

        Raises ``EmbeddingError`` or ``ConfigurationError`` when the embedder cannot; what was
        embedded until then is kept.
        """
        self._resting_until = 0.0
        self._refused.clear()
        done = 0
        if self._vectors.state().active is not None:
            self._vectors.queue_missing()
        while (state := self._vectors.state()).active is not None and state.is_behind:
            pending = self._vectors.settle(self._batch_size())
            wanted = [text for text in pending if text.seq not in self._refused]
            if not wanted:
                break
            done += self._embed(state.active, wanted, seconds=None)
            if progress is not None:
                progress(done, done + self._vectors.count_pending() - len(self._refused))
        if self._refused:
            raise EmbeddingError(
                f"the embedder refused {len(self._refused)} texts: they are found by keyword only"
            )
        return done

    # Embedding --------------------------------------------------------------------------------

    def _embed(
        self,
        model: EmbeddingModel,
        pending: Sequence[PendingText],
        *,
        seconds: float | None,
        patient: bool = True,
    ) -> int:
        """Embed texts, keep their vectors, and return how many were kept."""
        embedder = self._embedder_of(model)
        pairs, refused = self._within(seconds, lambda: embed_texts(embedder, pending))
        self._refused.update(text.seq for text in refused)
        for _, vector in pairs:
            _refuse_other_size(len(vector.data), model)
        durable = len(pairs) > _FEW
        return self._vectors.put(model.model_id, pairs, durable=durable, patient=patient)

    def embedder_for_move(self, spec: EmbedderSpec) -> CheckedEmbedder:
        """Return the embedder that a move goes to. Raises ``ConfigurationError`` without one.

        ``"auto"`` is the memory's own; where that is ``"auto"`` too, the one that a move was begun
        with, or was made with, else what is at hand.
        """
        if _is_auto(spec):
            spec = self._spec
        if _is_auto(spec):
            state = self._vectors.state()
            begun = state.building or state.active
            spec = begun.embedder if begun else spec
        made = create_embedder(spec)
        if made is None:
            raise ConfigurationError(
                "there is no embedder: run `pip install 'agent-memory[local]'` for one that works"
                " offline, or set OPENAI_API_KEY, or name another with --embedder"
            )
        return CheckedEmbedder(made, cache_ttl_seconds=self._cache_ttl)

    def use(self, embedder: CheckedEmbedder) -> None:
        """Use an embedder from now on: a move went to it."""
        with self._lock:
            self._embedder = embedder
            self._resting_until = 0.0

    def forget(self) -> None:
        """Use no embedder any more: the vectors are gone."""
        with self._lock:
            self._start_anew()

    def _embedder_of(self, model: EmbeddingModel) -> CheckedEmbedder:
        """Return the embedder that makes vectors of a model, loaded and known to fit."""
        self._leave_parent()
        with self._lock:
            found = self._embedder
        if found is not None and found.model == model.model:
            return found
        made = self._within(self._timeout, lambda: self._make(model))
        self._within(LOADING_SECONDS, made.load)
        with self._lock:
            self._embedder = made
        return made

    def _make(self, model: EmbeddingModel) -> CheckedEmbedder:
        spec = model.embedder if _is_auto(self._spec) else self._spec
        made = create_embedder(spec)
        if made is None:
            raise ConfigurationError("this memory was opened without an embedder")
        if isinstance(made, EmbedderChain):
            made.settle(model.model, model.dimensions)
        checked = CheckedEmbedder(made, cache_ttl_seconds=self._cache_ttl)
        if checked.model != model.model:
            raise ConfigurationError(
                f"the file's vectors are of {model.model}, the embedder's of {checked.model}:"
                " `agent-memory migrate` changes them"
            )
        if model.base_url != checked.base_url:
            raise ConfigurationError(
                f"the file's vectors were made by {model.base_url or 'the provider itself'}, not by"
                f" {checked.base_url or 'the provider itself'}: set OPENAI_BASE_URL, or migrate"
            )
        return checked

    def _is_resting(self) -> bool:
        self._leave_parent()
        return time.monotonic() < self._resting_until

    def _within(self, seconds: float | None, call: Callable[[], Result]) -> Result:
        """Call, for so long and no longer; after a failure, not at all for a while."""
        if self._is_resting():
            raise EmbeddingError(f"{self._resting_because} (not asked again for a while)")
        if self._stuck is not None and self._stuck.is_alive():
            raise EmbeddingError("the embedder has not answered an earlier question yet")
        try:
            if seconds is None:
                return call()
            return self._bounded(seconds, call)
        except (EmbeddingError, ConfigurationError) as error:
            if not isinstance(error, EmbeddingRefused):
                self._resting_because = str(error)
                self._resting_until = time.monotonic() + REST_SECONDS
            raise

    def _bounded(self, seconds: float, call: Callable[[], Result]) -> Result:
        """Call in a thread of its own, which is left behind if it takes too long."""
        outcome: dict[str, Any] = {}

        def run() -> None:
            try:
                outcome["result"] = call()
            except BaseException as error:  # noqa: BLE001 - it is raised again by the caller
                outcome["error"] = error

        thread = threading.Thread(target=run, name="agent-memory-embedder", daemon=True)
        thread.start()
        thread.join(seconds)
        if thread.is_alive():
            self._stuck = thread
            raise EmbeddingError(f"the embedder did not answer within {seconds:.3g} s")
        if "error" in outcome:
            raise outcome["error"]
        return outcome["result"]  # type: ignore[no-any-return]


def embed_texts(
    embedder: CheckedEmbedder, pending: Sequence[PendingText]
) -> tuple[list[tuple[PendingText, Any]], list[PendingText]]:
    """Return texts with their quantized vectors, and those that the provider refused.

    One text that a provider does not take must not keep the others of its batch from being
    embedded: the batch is halved until that text is alone.
    """
    try:
        found = embedder.embed([text.text for text in pending])
    except EmbeddingRefused:
        if len(pending) == 1:
            return [], list(pending)
        middle = len(pending) // 2
        pairs, refused = embed_texts(embedder, pending[:middle])
        more_pairs, more_refused = embed_texts(embedder, pending[middle:])
        return pairs + more_pairs, refused + more_refused
    return [(text, quantize(vector)) for text, vector in zip(pending, found, strict=True)], []


def described(embedder: CheckedEmbedder) -> EmbeddingModel:
    """Return what the file is to hold of an embedder; it has no number yet."""
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


def _is_auto(spec: EmbedderSpec) -> bool:
    return isinstance(spec, str) and spec == "auto"


def _refuse_other_size(dimensions: int, model: EmbeddingModel) -> None:
    """Refuse a vector that cannot be compared, of a model that was changed under its name."""
    if dimensions != model.dimensions:
        raise ConfigurationError(
            f"the file's vectors of {model.model} have {model.dimensions} numbers, the embedder's"
            f" {dimensions}: `agent-memory migrate` changes them"
        )


def _log(message: str, error: AgentMemoryError) -> None:
    import logging  # noqa: PLC0415 - 3 ms of a start of 180, for a line seldom written

    logging.getLogger("agent_memory").warning(message, error)
