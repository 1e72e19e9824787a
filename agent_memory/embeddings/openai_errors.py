"""What the errors of the openai client mean to the user of this library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.embeddings.settings import DIMENSIONS_VARIABLE
from agent_memory.errors import ConfigurationError, EmbeddingError, EmbeddingRefused
from agent_memory.text.key_masking import hide_key

if TYPE_CHECKING:
    import openai

_REFUSALS: Final = (400, 413, 422)


def embedding_error(
    error: Exception,
    *,
    model: str,
    dimensions: int,
    secret: str,
    attempts: int,
    timeout_seconds: float,
) -> EmbeddingError | ConfigurationError:
    """Return our error for one of the client's; it says what to do, and never the key.

    ``dimensions`` are those that were asked for, 0 for none: a service that will not have them is
    a ``ConfigurationError``, for it would refuse every text.
    """
    import openai  # noqa: PLC0415 - imported already, by the request that failed

    hide_key(error, secret)
    tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    if isinstance(error, openai.APIStatusError):
        refused = error.status_code in _REFUSALS
        if refused and dimensions and "dimensions" in str(error):
            return ConfigurationError(f"{cannot_shorten(model, dimensions)} ({error!s:.300})")
        return _of_status(error, model, tries)
    if isinstance(error, openai.APITimeoutError):
        return EmbeddingError(
            f"the embedding service did not answer within {timeout_seconds:g} seconds,"
            f" in {tries}: try again later, or raise embedding_timeout"
            " (AGENT_MEMORY_EMBEDDING_TIMEOUT)"
        )
    if isinstance(error, openai.APIConnectionError):
        return EmbeddingError(
            f"the embedding service cannot be reached, in {tries}:"
            f" check the network and the base_url, or try again later"
        )
    return EmbeddingError(
        f"the service's answer for model {model} is no list of embeddings"
        f" ({type(error).__name__}: {error!s:.200}): check the base_url, or try again later"
    )


def cannot_shorten(model: str, asked: int, *, own: int | None = None) -> str:
    """Say that a model has vectors of its ``own`` length only, and what to do about it."""
    has = "its own dimensions" if own is None else f"{own} dimensions"
    return (
        f"model {model} has {has}, not {asked}: unset embedding_dimensions ({DIMENSIONS_VARIABLE}),"
        " or take a model that can be shortened, such as text-embedding-3-small"
    )


def _of_status(error: openai.APIStatusError, model: str, tries: str) -> EmbeddingError:
    status = error.status_code
    answer = f" ({error!s:.300})"
    if status in _REFUSALS:
        return EmbeddingRefused(f"the embedding service refuses these texts{answer}")
    advice = {
        401: "refuses the API key: check OPENAI_API_KEY, or embedding_api_key",
        403: f"does not let this key use model {model}: check OPENAI_API_KEY, and the model",
        404: f"does not know model {model}, or not at this address: check its name and base_url",
        429: f"was asked too much, in {tries}: try again later, or check the account's quota",
    }.get(status, f"failed with HTTP status {status}, in {tries}: try again later")
    return EmbeddingError(f"the embedding service {advice}{answer}")
