"""Embeddings from OpenAI, or from any server with its API, through the official client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings.settings import (
    DEFAULT_BATCH_SIZE,
    DEFAULT_MODEL,
    DIMENSIONS_VARIABLE,
    KEY_VARIABLE,
    MODEL_VARIABLE,
    PROBE_TEXT,
    EmbedderSettings,
    dimensions_setting,
    seconds_setting,
    text_setting,
    whole_number_setting,
)
from agent_memory.embeddings.usage import EmbeddingUsage, estimate_tokens
from agent_memory.errors import ConfigurationError, EmbeddingError, EmbeddingRefused
from agent_memory.models.embedding_traits import EMBEDDING_MODELS
from agent_memory.models.fields import is_key
from agent_memory.runtime import fork_safety
from agent_memory.runtime.api_client import (
    IN_TIME,
    NO_KEY,
    ProcessClient,
    failure_of,
    hide_key,
    is_web_address,
    mask_key,
    shown_address,
)
from agent_memory.runtime.packages import require_package

if TYPE_CHECKING:
    import openai
    from openai.types import CreateEmbeddingResponse

_REFUSALS: Final = (400, 413, 422)
"""Status codes with which a service refuses these texts."""
_OPENAI_URL: Final = "https://api.openai.com/v1"
_NEVER_SHORTENED: Final = {"text-embedding-ada-002": 1536}
"""Models that refuse a request for a length, even for their own."""


class OpenAIEmbedder:
    """Requests embeddings from OpenAI, or from a compatible server (Ollama, vLLM, Azure, ...).

    Arguments that are not given come from the environment:

    - ``model``: AGENT_MEMORY_EMBEDDING_MODEL, else text-embedding-3-small.
    - ``api_key``: OPENAI_API_KEY.
    - ``base_url``, the address of a compatible server: OPENAI_BASE_URL.
    - ``dimensions``: AGENT_MEMORY_EMBEDDING_DIMENSIONS, else the model's own.
    - ``batch_size``: AGENT_MEMORY_EMBEDDING_BATCH_SIZE, else 100 texts per request.
    - ``timeout_seconds``: AGENT_MEMORY_EMBEDDING_TIMEOUT, else 30, per attempt.
    - ``max_retries``: AGENT_MEMORY_EMBEDDING_RETRIES, else 2, so three attempts, with increasing
      waits between them.

    Raises ``ConfigurationError`` for an invalid setting, such as more ``dimensions`` than the model
    has, and if there is neither a key nor a ``base_url``. No request is made before the first
    embedding. Threads may share it.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        dimensions: int | None = None,
        batch_size: int | None = None,
        timeout_seconds: float | None = None,
        max_retries: int | None = None,
    ) -> None:
        self._model = text_setting(model, MODEL_VARIABLE, DEFAULT_MODEL)
        self._base_url = _clean_url(text_setting(base_url, "OPENAI_BASE_URL"))
        self._api_key = _clean_key(text_setting(api_key, KEY_VARIABLE), self._base_url)
        # 0 means "not given": the service then sends vectors of the model's own length.
        self._asked_dimensions = _fitting(dimensions_setting(dimensions), self._model)
        self.batch_size = whole_number_setting(
            batch_size,
            "batch_size",
            "AGENT_MEMORY_EMBEDDING_BATCH_SIZE",
            default=DEFAULT_BATCH_SIZE,
            lowest=1,
            highest=2048,
        )
        self._timeout = seconds_setting(
            timeout_seconds, "timeout_seconds", "AGENT_MEMORY_EMBEDDING_TIMEOUT", default=30.0
        )
        self._max_retries = whole_number_setting(
            max_retries,
            "max_retries",
            "AGENT_MEMORY_EMBEDDING_RETRIES",
            default=2,
            lowest=0,
            highest=20,
        )
        self._spec = EMBEDDING_MODELS.get(self._model)
        self._learned_dimensions = _own_dimensions(self._model)
        require_package("openai", extra=None)
        self._client = ProcessClient(self._make_client)
        self._usage = EmbeddingUsage()
        self._lock = fork_safety.Lock()

    @property
    def model(self) -> str:
        """The model's name."""
        return self._model

    @property
    def name(self) -> str:
        """``openai``, or ``openai:MODEL`` if the model is not the default."""
        return "openai" if self._model == DEFAULT_MODEL else f"openai:{self._model}"

    @property
    def base_url(self) -> str | None:
        """The server's address, without user name and password; ``None`` for OpenAI's own."""
        if self._base_url == _OPENAI_URL:
            return None
        scheme, _, rest = self._base_url.partition("://")
        host, _, path = rest.partition("/")
        return f"{scheme}://{host.rpartition('@')[2]}/{path}".rstrip("/")

    @property
    def dimensions(self) -> int:
        """The length of a vector; for a model that is not in ``EMBEDDING_MODELS``, by a request."""
        if not self._asked_dimensions and not self._learned_dimensions:
            self.embed([PROBE_TEXT])
        return self._asked_dimensions or self._learned_dimensions

    @property
    def cost_per_1k_tokens(self) -> float:
        """Dollars per 1,000 tokens: OpenAI's price, and 0 for any other server."""
        is_openai = self._base_url.startswith("https://api.openai.com/")
        return self._spec["cost_per_1k_tokens"] if is_openai and self._spec else 0.0

    @property
    def usage(self) -> EmbeddingUsage:
        """The usage of this embedder so far."""
        return self._usage

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, with ``batch_size`` texts per request.

        A text that is longer than the model's input is truncated. Raises ``EmbeddingRefused`` if
        the service refuses the texts, ``EmbeddingError`` for any other failure.
        """
        vectors: list[list[float]] = []
        for start in range(0, len(texts), self.batch_size):
            vectors += self._embed_batch(texts[start : start + self.batch_size])
        return vectors

    def _embed_batch(self, texts: Sequence[str]) -> list[list[float]]:
        import openai  # noqa: PLC0415 - half a second that only this embedder costs

        longest = self._spec["max_tokens"] if self._spec else None
        sent = [cut_to_tokens(text, longest) if longest else text for text in texts]
        # openai.omit exists only since version 1.108.
        asked: dict[str, Any] = {}
        if self._asked_dimensions:
            asked["dimensions"] = self._asked_dimensions
        try:
            response = self._client.get().embeddings.create(model=self._model, input=sent, **asked)
            vectors = _in_order(response, len(sent), key=self._api_key)
        # The client does not check answers: an HTML page causes an AttributeError.
        except (openai.OpenAIError, ValueError, TypeError, AttributeError) as error:
            raise self._error(error) from error
        own = len(vectors[0])
        if self._asked_dimensions not in (0, own) and self._spec is None:
            raise ConfigurationError(cannot_shorten(self._model, self._asked_dimensions, own=own))
        self._count(response, sent, vectors)
        return vectors

    def _error(self, error: Exception) -> EmbeddingError | ConfigurationError:
        """Return our error for one of the client's; it says what to do, and never contains the key.

        If the service rejects the dimensions, it is a configuration error, since every text would
        be refused.
        """
        hide_key(error, self._api_key)
        if getattr(error, "status_code", None) in _REFUSALS:
            # If a request was answered before, the dimensions are not what is refused now.
            dimensions = 0 if self._usage.requests else self._asked_dimensions
            answer = f"({error!s:.300})"
            if dimensions and "dimensions" in str(error):
                return ConfigurationError(f"{cannot_shorten(self._model, dimensions)} {answer}")
            return EmbeddingRefused(f"the embedding service refuses these texts {answer}")
        failure = failure_of(
            error,
            service="the embedding service",
            model=self._model,
            key_variable=KEY_VARIABLE,
            key_setting="embedding_api_key",
            timeout=self._timeout,
            timeout_setting="embedding_timeout (AGENT_MEMORY_EMBEDDING_TIMEOUT)",
            attempts=self._max_retries + 1,
        )
        return EmbeddingError(
            failure
            or f"the service's answer for model {self._model} is not a list of embeddings"
            f" ({type(error).__name__}: {error!s:.200}): check the base_url, or try again"
            " later"
        )

    def _make_client(self) -> openai.OpenAI:
        import openai  # noqa: PLC0415 - half a second that only this embedder costs

        return openai.OpenAI(
            api_key=self._api_key or NO_KEY,
            base_url=self._base_url,
            timeout=self._timeout,
            max_retries=self._max_retries,
            http_client=openai.DefaultHttpxClient(event_hooks=IN_TIME),
        )

    def _count(
        self, response: CreateEmbeddingResponse, sent: Sequence[str], vectors: list[list[float]]
    ) -> None:
        usage = getattr(response, "usage", None)  # some servers leave it out
        tokens = getattr(usage, "total_tokens", None)
        if not isinstance(tokens, int) or tokens <= 0:
            tokens = estimate_tokens(sent)
        with self._lock.bare:
            self._learned_dimensions = self._learned_dimensions or len(vectors[0])
            self._usage += EmbeddingUsage.of_request(
                len(sent), tokens, cost_per_1k_tokens=self.cost_per_1k_tokens
            )


def create(model: str, settings: EmbedderSettings) -> OpenAIEmbedder:
    """Return the embedder for a model; an empty text means the one that is set."""
    return OpenAIEmbedder(
        settings.openai_model(model),
        api_key=settings.api_key,
        base_url=settings.base_url,
        dimensions=settings.dimensions,
        batch_size=settings.batch_size,
        timeout_seconds=settings.timeout_seconds,
        max_retries=settings.max_retries,
    )


def _own_dimensions(model: str) -> int:
    """Return the length of a model's vectors, or 0 if it is unknown."""
    spec = EMBEDDING_MODELS.get(model)
    return spec["dimensions"] if spec else _NEVER_SHORTENED.get(model, 0)


def _fitting(asked: int, model: str) -> int:
    """Return the dimensions to request from a model; 0 means the model's own.

    Raises ``ConfigurationError`` for dimensions that the model cannot give.
    """
    own = _own_dimensions(model)
    if model in _NEVER_SHORTENED and asked not in (0, own):
        raise ConfigurationError(cannot_shorten(model, asked, own=own))
    if own and asked > own:
        raise ConfigurationError(
            f"{model} has at most {own} dimensions, not {asked}: set embedding_dimensions"
            f" ({DIMENSIONS_VARIABLE}) to a smaller number, or use another model"
        )
    return 0 if model in _NEVER_SHORTENED else asked


def cut_to_tokens(text: str, max_tokens: int) -> str:
    """Truncate a text that may have more tokens than ``max_tokens``.

    It cuts rather too much than too little, because a service refuses the whole batch: an ASCII
    character counts as half a token, any other as two.
    """
    halves = 2 * max_tokens
    if 4 * len(text) <= halves:
        return text
    for position, letter in enumerate(text):
        halves -= 1 if letter.isascii() else 4
        if halves < 0:
            return text[:position]
    return text


def _in_order(response: CreateEmbeddingResponse, count: int, *, key: str) -> list[list[float]]:
    """Return the vectors in the order of their texts, by their ``index``."""
    if len(response.data) != count:
        raise EmbeddingError(
            f"the service sent {len(response.data)} vectors for {count} texts: none were used"
        )
    vectors = {item.index: item.embedding for item in response.data}
    if vectors.keys() != set(range(count)):
        shown = mask_key(repr(sorted(vectors)), key)
        raise EmbeddingError(
            f"the service numbered the vectors of {count} texts {shown:.100}: none were used"
        )
    return [vectors[index] for index in range(count)]


def _clean_url(url: str) -> str:
    if url and not is_web_address(url):
        raise ConfigurationError(
            f"the base_url{shown_address(url)} is not a web address: write it like"
            " http://localhost:11434/v1 (embedding_base_url, or OPENAI_BASE_URL)"
        )
    if "?" in url or "#" in url:  # the client would append the rest of the path after them
        raise ConfigurationError(
            "the base_url has a ? or #, and what follows cannot be used in requests: leave it"
            " out (embedding_base_url, or OPENAI_BASE_URL); a key goes into embedding_api_key"
        )
    return url or _OPENAI_URL


def _clean_key(key: str, base_url: str) -> str:
    if not key and base_url == _OPENAI_URL:
        raise ConfigurationError(
            f"there is no key for OpenAI: set {KEY_VARIABLE}, or embedding_api_key,"
            " or use the local embedder (pip install 'agent-memory[local]')"
        )
    if not is_key(key):
        raise ConfigurationError(
            f"the API key has a space or another character that no key has: check {KEY_VARIABLE}"
            " and embedding_api_key"
        )
    return key


def cannot_shorten(model: str, asked: int, *, own: int | None = None) -> str:
    """Return a message that a model has only vectors of its ``own`` length, and what to do."""
    has = "its own dimensions" if own is None else f"{own} dimensions"
    return (
        f"model {model} has {has}, not {asked}: unset embedding_dimensions"
        f" ({DIMENSIONS_VARIABLE}), or use a model whose vectors can be shortened, such as"
        " text-embedding-3-small"
    )
