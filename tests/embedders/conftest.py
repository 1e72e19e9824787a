"""Fixtures of the embedders: a server of their own, and no key from outside."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from embedding_server import EmbeddingServer


@pytest.fixture(autouse=True)
def no_keys_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may reach a real service, or go to the server by way of a proxy."""
    for name in [name for name in os.environ if name.startswith("OPENAI_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        yield running
