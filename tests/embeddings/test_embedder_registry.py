"""create_embedder: embedders by name, by what is at hand, and of other packages."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import agent_memory
from agent_memory import AgentMemory
from agent_memory.embeddings import registry
from agent_memory.embeddings.chain import EmbedderChain
from agent_memory.embeddings.openai import OpenAIEmbedder
from agent_memory.embeddings.registry import (
    EMBEDDERS,
    EmbedderKind,
    create_embedder,
    embedder_names,
)
from agent_memory.embeddings.settings import EmbedderSettings
from agent_memory.embeddings.wordllama import WordLlamaEmbedder
from agent_memory.errors import ConfigurationError

PLUGIN = """
class Mine:
    def __init__(self, model):
        self.model = model or "mine-1"
        self.dimensions = 3
    def embed(self, texts):
        return [[1.0, 2.0, 3.0] for _ in texts]
def fail(model):
    raise RuntimeError("no licence")
def nothing(model):
    return 7
"""
ENTRY_POINTS = """
[agent_memory.embedders]
mine = mine_plugin:Mine
wordllama = mine_plugin:Mine
failing = mine_plugin:fail
nothing = mine_plugin:nothing
gone = mine_plugin:gone
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with entry points, as pip lays it out."""
    (tmp_path / "mine_plugin.py").write_text(PLUGIN)
    info = tmp_path / "mine_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    monkeypatch.delitem(sys.modules, "mine_plugin", raising=False)


def created(spec: Any) -> Any:
    embedder = create_embedder(spec)
    assert embedder is not None
    return embedder


@pytest.mark.parametrize("spec", [None, "none", " none ", [], ["none"], "none,none"])
def test_none_is_none(spec: Any) -> None:
    assert create_embedder(spec) is None


@pytest.mark.parametrize(
    ("spec", "model"),
    [
        ("wordllama", "wordllama-l2-supercat-256"),
        ("local", "wordllama-l2-supercat-256"),
        ("wordllama:128", "wordllama-l2-supercat-128"),
        ("local:64", "wordllama-l2-supercat-64"),
        ("openai", "text-embedding-3-small"),
        ("openai:text-embedding-3-large", "text-embedding-3-large"),
        (" openai:nomic-embed-text:v1.5 ", "nomic-embed-text:v1.5"),
    ],
)
def test_a_name_makes_an_embedder_that_tells_its_name(
    monkeypatch: pytest.MonkeyPatch, spec: str, model: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    embedder = created(spec)
    assert embedder.model == model
    assert created(embedder.name).model == model


def test_an_object_is_taken_as_it_is() -> None:
    embedder = WordLlamaEmbedder()
    assert create_embedder(embedder) is embedder


def test_auto_takes_openai_where_there_is_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    assert isinstance(create_embedder("auto"), OpenAIEmbedder)


@pytest.mark.parametrize("key", ["", "  "])
def test_auto_takes_what_is_installed_without_a_key(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    assert isinstance(create_embedder("auto"), WordLlamaEmbedder)


@pytest.mark.parametrize("spec", ["opnai", "", "OpenAI", "wordllama2:64", ["local", "opnai"], ","])
def test_an_unknown_name_is_refused_with_those_there_are(spec: Any) -> None:
    with pytest.raises(
        ConfigurationError, match="auto, fastembed, local, minilm, multilingual-e5, none"
    ):
        create_embedder(spec)


@pytest.mark.parametrize("spec", ["wordllama:100", "wordllama:big", "openai"])
def test_an_embedder_that_cannot_be_had_is_refused(spec: str) -> None:
    with pytest.raises(ConfigurationError):
        create_embedder(spec)


@pytest.mark.parametrize("spec", [7, object(), WordLlamaEmbedder, b"openai"])
def test_what_is_no_embedder_is_refused(root: Path, spec: Any) -> None:
    with pytest.raises(ConfigurationError, match="is not an embedder"):
        create_embedder(spec)
    with pytest.raises(ConfigurationError, match="is not an embedder"):
        AgentMemory("bob", root=root, embedder=spec)  # which needs it much later, or never
    assert not AgentMemory.exists("bob", root)


class MadeWhenNeeded:
    """Stands for an embedder whose model takes long to load."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"{name}: loaded too early")


def test_one_that_is_made_when_it_is_needed_is_not_asked_at_opening(root: Path) -> None:
    embedder: Any = MadeWhenNeeded()
    with AgentMemory("bob", root=root, embedder=embedder) as memory:
        assert memory.search("anything").total_count == 0


@pytest.mark.parametrize("kind", ["text", "list", "tuple"])
def test_several_make_a_chain(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    names = ["openai", "local"]
    spec = {"text": "openai, local", "list": names, "tuple": tuple(names)}[kind]
    chain = created(spec)
    assert isinstance(chain, EmbedderChain)
    assert chain.name == "openai,wordllama"


def test_a_chain_leaves_out_who_cannot_be_had() -> None:
    assert created("openai,local").name == "wordllama"


def test_a_chain_of_nobody_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        create_embedder("openai,wordllama:100")


@pytest.mark.usefixtures("plugin")
def test_another_package_adds_a_name() -> None:
    assert {"mine", "openai"} <= set(embedder_names())
    assert (created("mine").model, created("mine:large").model) == ("mine-1", "large")


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("spec", "model", "expected"),
    [
        ("mine", "set", "set"),
        ("mine:named", "set", "named"),
        # A model of OpenAI's, or one for several embedders, is not for this one.
        ("mine", "text-embedding-3-large", "mine-1"),
        ("mine,none", "set", "mine-1"),
        (["mine"], "set", "mine-1"),
    ],
)
def test_the_model_that_is_set_is_that_of_an_embedder_that_is_named_alone(
    spec: Any, model: str, expected: str
) -> None:
    embedder = create_embedder(spec, EmbedderSettings(model=model, file_model="in-file"))
    assert embedder is not None
    assert embedder.model == expected


@pytest.mark.usefixtures("plugin")
def test_a_model_that_the_file_or_openais_variable_names_is_loaded_by_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AGENT_MEMORY_EMBEDDING_MODEL", "environment")
    embedder = create_embedder("mine", EmbedderSettings(file_model="in-file"))
    assert embedder is not None
    assert embedder.model == "mine-1"


@pytest.mark.usefixtures("plugin")
def test_a_built_in_name_cannot_be_taken() -> None:
    assert isinstance(create_embedder("wordllama"), WordLlamaEmbedder)


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("name", "told"), [("failing", "no licence"), ("nothing", "has no `embed`"), ("gone", "gone")]
)
def test_a_broken_plugin_is_named(name: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{name} \(mine_plugin:.*{told}"):
        create_embedder(name)


def test_importing_the_embedders_imports_no_providers_package() -> None:
    code = (
        "import sys, agent_memory.embeddings\n"
        "heavy = 'openai numpy wordllama sentence_transformers fastembed torch asyncio logging'\n"
        "print([name for name in heavy.split() if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


# The table ----------------------------------------------------------------------------------

FOLDER = Path(registry.__file__).parent
PROJECT = Path(agent_memory.__file__).parents[1]


def provider_classes(module: Path) -> list[str]:
    """Return the classes of a module that turn texts into vectors themselves."""
    return [
        node.name
        for node in ast.parse(module.read_text()).body
        if isinstance(node, ast.ClassDef)
        and any(isinstance(part, ast.FunctionDef) and part.name == "embed" for part in node.body)
        and node.name not in {"CheckedEmbedder", "EmbedderChain"}  # they ask other embedders
    ]


def test_every_provider_of_the_folder_is_in_the_table() -> None:
    providers = {path.stem for path in FOLDER.glob("*.py") if provider_classes(path)}
    assert {kind.module.rpartition(".")[2] for kind in EMBEDDERS.values()} == providers


@pytest.mark.parametrize("kind", EMBEDDERS.values(), ids=lambda kind: kind.name)
def test_an_embedder_of_the_table_is_complete(kind: EmbedderKind) -> None:
    (name,) = provider_classes(FOLDER / f"{kind.module.rpartition('.')[2]}.py")
    assert name in agent_memory.__all__
    assert kind.name in embedder_names()
    assert bool(kind.settings) != bool(kind.extra)
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    if kind.extra:
        package, *_ = extras["optional-dependencies"][kind.extra]
        assert package.replace("-", "_").startswith(kind.package)


@pytest.mark.parametrize("kind", EMBEDDERS.values(), ids=lambda kind: kind.name)
def test_an_embedder_whose_package_is_missing_tells_the_extra_of_the_table(
    kind: EmbedderKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_memory.runtime.packages.is_installed", lambda _package: False)
    if kind.extra:
        with pytest.raises(ConfigurationError, match=rf"{kind.package} is not.*\[{kind.extra}\]"):
            create_embedder(kind.name)


def test_without_openai_the_rest_works_and_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    monkeypatch.setitem(sys.modules, "openai", None)  # which import and find_spec take as missing
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.store("Prefer PostgreSQL")
        assert len(memory.search("postgresql")) == 1
        for call in (
            lambda: create_embedder("openai", EmbedderSettings(api_key="sk-x")),
            lambda: memory.add("I live in Oslo", llm="openai:gpt-4.1-mini"),
        ):
            with pytest.raises(ConfigurationError, match=r"openai is not .*: pip install openai$"):
                call()


@pytest.mark.parametrize("kind", EMBEDDERS.values(), ids=lambda kind: kind.name)
def test_the_guide_has_the_row_of_an_embedder(kind: EmbedderKind) -> None:
    pages = [PROJECT / "README.md", *(PROJECT / "agent_memory" / "guides").glob("*.md")]
    assert sum(kind.row in page.read_text().splitlines() for page in pages) == 1
