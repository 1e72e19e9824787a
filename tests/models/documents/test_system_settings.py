"""Reading C's configuration: files, mappings, the environment, and what is made of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from embedding_server import EmbeddingServer

from agent_memory import (
    AgentMemory,
    ConfigurationError,
    OpenAIEmbedder,
    SentenceTransformerEmbedder,
    create_embedder,
)
from agent_memory.api.system_config import (
    MAX_CONFIG_BYTES,
    embedder_arguments,
    load_system_config,
    memory_arguments,
    refuse_remote_store,
)
from agent_memory.extraction.llm.registry import as_language_model
from agent_memory.models.documents.system_config import (
    EmbedderConfig,
    LLMConfig,
    OpenAIConfig,
    SystemConfig,
)
from agent_memory.runtime.packages import is_installed

KEY = "sk-proj-" + "Ab3dE" * 12
TOLD: dict[str, Any] = {
    "llm": {"provider": "openai", "api_key": "${OPENAI_API_KEY}", "model": "gpt-x", "timeout": 20},
    "embedder": {"provider": "openai", "dimensions": 512},
    "monitoring": {"enabled": True, "log_level": "DEBUG"},
}
YAML = """
# what is read
llm:
  provider: openai
  api_key: ${OPENAI_API_KEY}
  model: gpt-x
  timeout: 20
  organization:
  temperature: ~
vector_store: ~
performance:
embedder: {provider: openai, dimensions: 512}
monitoring:
  enabled: yes
  log_level: DEBUG
"""


def refused(source: Any, environ: dict[str, str] | None = None) -> str:
    """Return what is said of a configuration that is refused."""
    with pytest.raises(ConfigurationError) as caught:
        load_system_config(source, environ or {})
    assert caught.value.__cause__ is None or KEY not in repr(caught.value.__cause__)
    return str(caught.value)


def test_yaml_json_mappings_and_models_tell_the_same(tmp_path: Path) -> None:
    whole = SystemConfig.model_validate(TOLD)
    for name, text in (("a.yaml", YAML), ("a.yml", json.dumps(TOLD)), ("a.json", json.dumps(TOLD))):
        (tmp_path / name).write_text(text)
        assert load_system_config(tmp_path / name, {}) == whole
        assert load_system_config(str(tmp_path / name), {}) == whole
    assert load_system_config(TOLD, {}) == whole
    assert load_system_config(whole, {"AGENT_MEMORY_LLM_MODEL": "other"}) is whole
    assert load_system_config({"llm": OpenAIConfig(model="x")}, {}).llm == OpenAIConfig(model="x")


def test_nothing_told_is_nothing_set(tmp_path: Path) -> None:
    assert load_system_config(None, {}) == load_system_config({}, {}) == SystemConfig()
    (tmp_path / "a.json").write_text("null")
    assert load_system_config(tmp_path / "a.json", {}) == SystemConfig()


def test_what_was_read_is_written_as_it_was_read(tmp_path: Path) -> None:
    config = load_system_config(TOLD, {"OPENAI_API_KEY": KEY})
    (tmp_path / "again.json").write_text(config.model_dump_json())
    assert load_system_config(tmp_path / "again.json", {}) == config
    assert KEY not in config.model_dump_json()


# The environment ----------------------------------------------------------------------------


def llm_of(source: Any, **environ: str) -> dict[str, Any]:
    """Return what is set of the model, with the key as it was given."""
    config = load_system_config(
        source, {f"AGENT_MEMORY_LLM_{name}": value for name, value in environ.items()}
    )
    assert config.llm is not None
    found = config.llm.model_dump(exclude_unset=True)
    if key := found.get("api_key"):
        found["api_key"] = key.get_secret_value()
    return found


def test_the_environment_counts_before_a_file() -> None:
    given = llm_of(TOLD, MODEL="other", BASE_URL="http://127.0.0.1/v1", API_KEY=" k ")
    assert given == {
        "provider": "openai", "api_key": "k", "model": "other", "timeout": 20,
        "base_url": "http://127.0.0.1/v1",
    }  # fmt: skip
    assert llm_of(None, MODEL="other", PROVIDER="") == {"model": "other"}
    assert llm_of({"llm": OpenAIConfig(model="x")}, API_KEY="k") == {"model": "x", "api_key": "k"}
    assert llm_of(TOLD, MODEL=" ") == TOLD["llm"]
    assert load_system_config(None, {}).llm is None


def test_another_provider_in_the_environment_gets_nothing_of_the_first() -> None:
    assert llm_of(TOLD, PROVIDER="anthropic") == {"provider": "anthropic", "timeout": 20}
    given = llm_of(TOLD, PROVIDER="anthropic", MODEL="claude-x", API_KEY="${K}")
    assert (given["model"], given["api_key"]) == ("claude-x", "${K}")
    assert llm_of({"llm": {"api_key": "k"}}, PROVIDER="openai")["api_key"] == "k"
    assert "api_key" not in llm_of({"llm": {"api_key": "k"}}, PROVIDER="anthropic")


def test_the_process_has_an_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_MEMORY_LLM_MODEL", "of-the-process")
    config = load_system_config()
    assert config.llm is not None
    assert config.llm.model == "of-the-process"


def test_a_wrong_value_in_the_environment_is_refused_with_the_variable() -> None:
    said = refused(TOLD, {"AGENT_MEMORY_LLM_PROVIDER": "plum"})
    assert "llm.provider" in said
    assert "(got 'plum', from AGENT_MEMORY_LLM_PROVIDER)" in said
    said = refused(TOLD, {"AGENT_MEMORY_LLM_API_KEY": f"{KEY} {KEY}"})
    assert "llm.api_key" in said
    assert "AGENT_MEMORY_LLM_API_KEY" in said
    assert KEY[:20] not in said


# What is refused ----------------------------------------------------------------------------

WRONG: list[tuple[Any, str]] = [
    ({"llm": {"modle": "x"}}, "llm.modle: unknown setting: did you mean 'model'?"),
    ({"llm": {"max_token": 5}}, "llm.max_token: unknown setting: did you mean 'max_tok"),
    ({"vectorstore": {}}, "vectorstore: unknown setting: did you mean 'vector_store'?"),
    ({"monitoring": {"Level": "INFO"}}, "did you mean 'log_level'?"),
    ({"graph_store": {"uri": "x"}}, "graph_store.uri: unknown setting"),
    ({"llm": {"timeout": 0}}, "llm.timeout: must be at least 1 (got 0)"),
    ({"llm": {"temperature": "hot"}}, "(got 'hot')"),
    ({"llm": {"api_key": "a b"}}, "must be a string without spaces"),
    ({"llm": {"api_key": "a b c"}}, "(got a value that is not shown)"),
    ({"llm": {"model": "x" * 600}}, "(got a string of 600 characters)"),
    ({"llm": {"max_tokens": [1]}}, "(got a list of 1)"),
    ({"llm": 5}, "llm: "),
    ({"llm": ["openai"]}, "llm: "),
    ({1: {}}, "1: "),
    (["llm"], "a list is not a configuration"),
    (5, "a int is not a configuration"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "says"), WRONG, ids=[says for _, says in WRONG])
def test_a_wrong_configuration_is_refused_with_name_value_and_rule(source: Any, says: str) -> None:
    assert says in refused(source)


def test_every_fault_is_named_at_once() -> None:
    said = refused({"llm": {"timeout": 0, "modle": 1}, "performance": {"batch_size": "x"}})
    for name in ("llm.timeout", "llm.modle", "performance.batch_size"):
        assert name in said


@pytest.mark.parametrize(
    "told",
    [
        {"llm": {"api_key": [KEY]}}, {"llm": {"apikey": KEY}}, {"llm": {KEY: 1}}, {"llm": KEY},
        {"llm": {"base_url": [KEY]}}, {"embedder": {"api_key": f"{KEY} "  f"{KEY}"}}, {KEY: 1},
        {"graph_store": {"connection_string": {"password": KEY}}}, {"llm": {"model": [KEY]}},
        {"llm": {"model": {"of": KEY}}}, {"llm": {"max_tokens": KEY}},
    ],
    ids=lambda told: "-".join(map(str, told)).replace(KEY, "KEY"),
)  # fmt: skip
def test_no_refusal_shows_a_key(told: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(told))
    assert KEY[8:24] not in refused(path)
    assert KEY[8:24] not in refused(told)


FILES: list[tuple[str, bytes, str]] = [
    ("a.yaml", b"", "empty"),
    ("a.yaml", b"- llm\n", "is a list, not a mapping of sections"),
    ("a.yaml", b"llm: {provider: openai\n", "line 2: is not YAML"),
    ("a.yaml", b"llm:\n  model: a\n  model: b\n", "line 3: the key 'model' occurs twice"),
    ("a.yaml", b"llm: &a {}\nembedder: *a\n", "line 2: the alias *a is not supported"),
    ("a.yaml", b"llm: !!python/object:os.system {}\n", "line 1"),
    ("a.yaml", b"[" * 100_000, "line 1"),
    ("a.yaml", b"llm:\n  model: \xff\n", "not YAML"),
    ("a.yaml", b"#" * (MAX_CONFIG_BYTES + 1), "is longer than 1,000,000 bytes"),
    ("a.json", b'{"llm": ', "is not JSON"),
    ("a.json", b'{"llm": {"model": "a", "model": "b"}}', "'model' occurs twice"),
    ("a.json", b"\xff", "is not UTF-8"),
    ("a.json", b'{"llm": {"temperature": NaN}}', "NaN"),
    ("a.json", b"[" * 100_000, "nested too deep"),
    ("a.json", b'{"llm": {"timeout": "x"}}', "llm.timeout"),
]


@pytest.mark.parametrize(("name", "content", "says"), FILES, ids=[says for _, _, says in FILES])
def test_a_file_that_cannot_be_read_is_refused_by_name(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    (tmp_path / name).write_bytes(content)
    said = refused(tmp_path / name)
    assert str(tmp_path / name) in said
    assert says in said


def test_a_file_that_is_not_there_is_a_matter_of_configuration(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path, "a\x00b"):
        assert "cannot be read" in refused(path)


# What is made of it -------------------------------------------------------------------------


def test_a_store_elsewhere_is_answered_when_a_memory_is_to_be_opened() -> None:
    config = load_system_config({"vector_store": {"provider": "qdrant"}}, {})
    with pytest.raises(ConfigurationError) as caught:
        refuse_remote_store(config)
    for word in ("vector_store", "'qdrant'", "SQLite file", "Leave the section vector_store out"):
        assert word in str(caught.value)
    refuse_remote_store(SystemConfig())


@pytest.mark.parametrize(
    ("graph", "says"),
    [
        ({"enabled": True, "provider": "neo4j"}, "graph_store.provider is 'neo4j'"),
        ({"enabled": True, "connection_string": "bolt://ann:plum@x"}, "graph_store.connection_str"),
        ({"enabled": True, "provider": "sqlite"}, None),
        ({"enabled": True}, None),
        ({"enabled": False, "provider": "neo4j", "connection_string": "bolt://x"}, None),
    ],
)
def test_a_graph_elsewhere_is_answered_alike(graph: dict[str, Any], says: str | None) -> None:
    config = load_system_config({"graph_store": graph}, {})
    if says is None:
        refuse_remote_store(config)
        return
    with pytest.raises(ConfigurationError, match=re.escape(says)) as caught:
        refuse_remote_store(config)
    assert "plum" not in str(caught.value)


def test_the_embedder_is_made_with_what_is_set(
    server: EmbeddingServer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUM_KEY", KEY)
    told = {
        "provider": "openai", "model": "text-embedding-3-large", "api_key": "${PLUM_KEY}",
        "dimensions": 512, "batch_size": 7, "base_url": server.url,
    }  # fmt: skip
    section = EmbedderConfig.model_validate(told)
    spec, settings = embedder_arguments(section)
    embedder = create_embedder(spec, settings)
    assert isinstance(embedder, OpenAIEmbedder)
    assert (embedder.model, embedder.dimensions) == ("text-embedding-3-large", 512)
    assert (embedder.batch_size, embedder.base_url) == (7, server.url)
    assert KEY not in repr(settings)
    with AgentMemory("bob", root=root, embedder=embedder) as memory:
        memory.store("a plum")
        memory.migrate()
        assert memory.info().vector_model == "text-embedding-3-large"


def test_a_memory_is_opened_with_what_the_configuration_says(
    server: EmbeddingServer, root: Path
) -> None:
    told = {
        "embedder": {"base_url": server.url, "api_key": "${PLUM_KEY}", "dimensions": 512},
        "performance": {"batch_size": 10, "enable_caching": False},
    }
    config = load_system_config(told, {})
    with pytest.raises(ConfigurationError, match="PLUM_KEY"):
        memory_arguments(config, {})
    arguments = memory_arguments(config, {"PLUM_KEY": KEY})
    assert arguments["config"] == {"migration_batch_size": 10, "enable_caching": False}
    with AgentMemory("bob", root=root, **arguments) as memory:
        memory.store_many([{"content": f"plum number {n}"} for n in range(25)])
        assert memory.migration_plan().batch_size == 10
        memory.migrate()
        assert memory.info().vector_dimensions == 512
    assert server.requests
    assert memory_arguments(SystemConfig()) == {}
    elsewhere = load_system_config({"vector_store": {}}, {})
    with pytest.raises(ConfigurationError, match="qdrant"):
        memory_arguments(elsewhere)


def test_the_settings_of_a_model_are_what_add_takes() -> None:
    told = {
        "provider": "openai", "model": "gpt-x", "api_key": KEY, "organization": "org",
        "base_url": "http://127.0.0.1:9/v1", "custom_fact_extraction_prompt": "Find.",
    }  # fmt: skip
    section = load_system_config({"llm": told}, {}).llm
    assert section is not None
    model = as_language_model(section.settings({}))
    assert model is not None
    assert model.model == "gpt-x"


def test_the_settings_of_anthropics_model_are_what_add_takes() -> None:
    pytest.importorskip("anthropic")
    told = {"provider": "anthropic", "model": "claude-x", "custom_update_memory_prompt": "Decide."}
    section = load_system_config({"llm": told}, {}).llm
    assert section is not None
    model = as_language_model(section.settings({"ANTHROPIC_API_KEY": KEY}))
    assert model is not None
    assert model.model == "claude-x"


def test_the_embedder_needs_the_variable_that_it_names() -> None:
    section = EmbedderConfig.model_validate({"api_key": "${PLUM_KEY}"})
    with pytest.raises(ConfigurationError, match=r"embedder\.api_key is \$\{PLUM_KEY\}"):
        embedder_arguments(section, {})


def test_huggingface_is_sentence_transformers() -> None:
    section = EmbedderConfig(provider="huggingface", model="org/a-model", batch_size=9)
    spec, settings = embedder_arguments(section, {"OPENAI_API_KEY": KEY})
    assert (spec, settings.model, settings.api_key) == (
        "sentence-transformers",
        "org/a-model",
        None,
    )
    wrong = EmbedderConfig(provider="huggingface", model="text-embedding-3-small")
    with pytest.raises(ConfigurationError, match="which is OpenAI's"):
        embedder_arguments(wrong)
    if is_installed("sentence_transformers"):
        embedder = create_embedder(spec, settings)
        assert isinstance(embedder, SentenceTransformerEmbedder)
        assert embedder.model == "a-model"
        return
    with pytest.raises(ConfigurationError, match="sentence-transformers"):
        create_embedder(spec, settings)


def test_without_a_section_the_embedder_is_what_is_at_hand() -> None:
    spec, settings = embedder_arguments(None)
    assert spec == "auto"
    assert (settings.model, settings.api_key, settings.batch_size) == (None, None, None)


def test_a_section_is_no_mapping_that_can_be_widened() -> None:
    section = LLMConfig(model="x")
    with pytest.raises(ValueError, match="frozen"):
        section.model = "y"  # type: ignore[misc]
