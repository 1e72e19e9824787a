"""The error of a service that answers, but will not have these texts."""

from __future__ import annotations

from agent_memory.errors import EmbeddingError


class EmbeddingRefused(EmbeddingError):
    """The service refuses these texts, and would refuse them again.

    One text of a batch may be the cause: ask for the halves of the batch, and leave out what is
    refused by itself.
    """
