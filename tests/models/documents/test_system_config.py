"""C's configuration of the system: its sections, and the secrets in them."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr, ValidationError

from agent_memory import ConfigurationError, load_system_config, memory_arguments
from agent_memory.models.documents.system_config import (
    AnthropicConfig,
    ConfigSection,
    EmbedderConfig,
    GraphStoreConfig,
    LLMConfig,
    MonitoringConfig,
    OpenAIConfig,
    PerformanceConfig,
    QdrantConfig,
    SystemConfig,
    VectorStoreConfig,
    reference_in,
)

KEY = "sk-proj-" + "Ab3dE" * 12

OPENAI = """
{
  "provider": "openai",
  "api_key": "${OPENAI_API_KEY}",
  "model": "gpt-x",
  "temperature": 0.0,
  "max_tokens": 1000,
  "timeout": 30,
  "max_retries": 3,
  "organization": "org-plum",
  "base_url": "http://127.0.0.1:11434/v1"
}
"""
ANTHROPIC = """
{
  "provider": "anthropic",
  "api_key": "${ANTHROPIC_API_KEY}",
  "model": "claude-x",
  "temperature": 0.0,
  "max_tokens": 1000,
  "timeout": 30,
  "max_retries": 3,
  "base_url": "string (optional)"
}
"""
QDRANT = """
{
  "provider": "qdrant",
  "host": "localhost",
  "port": 6333,
  "api_key": "${QDRANT_API_KEY}",
  "collection_name": "plum_memories",
  "vector_size": 1536,
  "distance_metric": "cosine",
  "timeout": 30,
  "use_https": false,
  "verify_ssl": true
}
"""
WHOLE = """
{
  "llm": {
    "provider": "openai",
    "api_key": "${OPENAI_API_KEY}",
    "model": "gpt-x",
    "temperature": 0.5,
    "max_tokens": 1000,
    "timeout": 30,
    "max_retries": 3,
    "custom_fact_extraction_prompt": "Find facts.",
    "custom_update_memory_prompt": "Decide."
  },
  "vector_store": {
    "provider": "qdrant",
    "host": "localhost",
    "port": 6333,
    "api_key": "${QDRANT_API_KEY}",
    "collection_name": "plum_memories",
    "vector_size": 1536,
    "distance_metric": "euclidean",
    "timeout": 30,
    "use_https": true,
    "verify_ssl": false
  },
  "embedder": {
    "provider": "huggingface",
    "model": "all-MiniLM-L6-v2",
    "api_key": "${HF_TOKEN}",
    "dimensions": 384,
    "batch_size": 100
  },
  "graph_store": {
    "enabled": true,
    "provider": "sqlite",
    "connection_string": "${GRAPH}"
  },
  "performance": {
    "cache_size": 1000,
    "batch_size": 100,
    "parallel_requests": 4,
    "enable_caching": true
  },
  "monitoring": {
    "enabled": true,
    "metrics_endpoint": "http://127.0.0.1:9090",
    "log_level": "WARN"
  }
}
"""
SHAPES: list[tuple[type[BaseModel], str]] = [
    (OpenAIConfig, OPENAI),
    (LLMConfig, OPENAI),
    (AnthropicConfig, ANTHROPIC),
    (LLMConfig, ANTHROPIC),
    (QdrantConfig, QDRANT),
    (VectorStoreConfig, QDRANT),
    (SystemConfig, WHOLE),
]


@pytest.mark.parametrize(("model", "text"), SHAPES)
def test_the_json_comes_back_byte_for_byte(model: type[BaseModel], text: str) -> None:
    packed = json.dumps(json.loads(text), separators=(",", ":"))
    assert model.model_validate_json(text).model_dump_json() == packed
    again = model.model_validate(json.loads(text))
    assert json.dumps(again.model_dump(mode="json"), separators=(",", ":")) == packed


def test_every_section_may_be_left_out() -> None:
    config = SystemConfig()
    assert (config.llm, config.vector_store, config.embedder) == (None, None, None)
    assert (config.graph_store.enabled, config.monitoring.enabled) == (False, False)
    assert config.performance == PerformanceConfig(
        cache_size=1000, batch_size=100, parallel_requests=1, enable_caching=True
    )
    assert SystemConfig.model_validate_json(config.model_dump_json()) == config


def test_a_provider_is_fixed_in_the_class_that_is_called_after_it() -> None:
    assert OpenAIConfig(model="x").model_dump(mode="json")["provider"] == "openai"
    assert AnthropicConfig(model="x").model_dump(mode="json")["provider"] == "anthropic"
    for model, text in ((OpenAIConfig, ANTHROPIC), (AnthropicConfig, OPENAI)):
        with pytest.raises(ValidationError, match="provider"):
            model.model_validate_json(text)


# Wrong values -------------------------------------------------------------------------------

WRONG: list[tuple[type[ConfigSection], dict[str, Any], str]] = [
    (LLMConfig, {"provider": "plum"}, "'openai' or 'anthropic'"),
    (LLMConfig, {"temperature": -0.1}, "greater than or equal to 0"),
    (LLMConfig, {"temperature": 2.1}, "less than or equal to 2"),
    (LLMConfig, {"temperature": "0"}, "valid number"),
    (LLMConfig, {"temperature": True}, "valid number"),
    (LLMConfig, {"temperature": float("nan")}, ""),
    (LLMConfig, {"provider": "anthropic", "temperature": 1.5}, "0 to 1"),
    (LLMConfig, {"provider": "anthropic", "organization": "org"}, "OpenAI only"),
    (LLMConfig, {"max_tokens": 0}, "greater than or equal to 1"),
    (LLMConfig, {"max_tokens": 1.0}, "valid integer"),
    (LLMConfig, {"max_tokens": "1000"}, "valid integer"),
    (LLMConfig, {"timeout": 0}, "greater than or equal to 1"),
    (LLMConfig, {"timeout": 86_401}, "less than or equal to 86400"),
    (LLMConfig, {"max_retries": 21}, "less than or equal to 20"),
    (LLMConfig, {"max_retries": True}, "valid integer"),
    (LLMConfig, {"model": " "}, "1 to 500 characters"),
    (LLMConfig, {"model": "x" * 501}, "not of 501"),
    (LLMConfig, {"custom_update_memory_prompt": ""}, "at least 1 item"),
    (VectorStoreConfig, {"provider": "chroma"}, "'qdrant'"),
    (VectorStoreConfig, {"port": 0}, "greater than or equal to 1"),
    (VectorStoreConfig, {"port": 65_536}, "less than or equal to 65535"),
    (VectorStoreConfig, {"vector_size": 0}, "greater than or equal to 1"),
    (VectorStoreConfig, {"distance_metric": "manhattan"}, "'cosine', 'euclidean' or 'dot'"),
    (VectorStoreConfig, {"use_https": "yes"}, "valid boolean"),
    (EmbedderConfig, {"provider": "cohere"}, "'openai' or 'huggingface'"),
    (EmbedderConfig, {"dimensions": 0}, "greater than or equal to 1"),
    (EmbedderConfig, {"batch_size": 2_049}, "less than or equal to 2048"),
    (GraphStoreConfig, {"enabled": 1}, "valid boolean"),
    (PerformanceConfig, {"cache_size": -1}, "greater than or equal to 0"),
    (PerformanceConfig, {"parallel_requests": 101}, "less than or equal to 100"),
    (MonitoringConfig, {"log_level": "LOUD"}, "'DEBUG', 'INFO', 'WARN' or 'ERROR'"),
]


@pytest.mark.parametrize(("model", "fields", "says"), WRONG)
def test_a_wrong_setting_is_refused_by_its_name(
    model: type[ConfigSection], fields: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        model(**fields)
    (fault,) = caught.value.errors()
    assert fault["loc"] == (list(fields)[-1],)
    assert says in fault["msg"]


@pytest.mark.parametrize(
    ("word", "level"),
    [("DEBUG", logging.DEBUG), ("INFO", logging.INFO), ("WARN", logging.WARNING),
     ("ERROR", logging.ERROR)],
)  # fmt: skip
def test_the_levels_are_those_of_logging(word: Any, level: int) -> None:
    assert MonitoringConfig(log_level=word).logging_level() == level


# Secrets ------------------------------------------------------------------------------------

WITH_SECRETS: list[tuple[type[ConfigSection], str]] = [
    (LLMConfig, "api_key"),
    (VectorStoreConfig, "api_key"),
    (EmbedderConfig, "api_key"),
    (GraphStoreConfig, "connection_string"),
]


@pytest.mark.parametrize(("model", "name"), WITH_SECRETS)
@pytest.mark.parametrize("given", [KEY, SecretStr(KEY)], ids=["text", "SecretStr"])
def test_a_secret_is_shown_nowhere(model: type[ConfigSection], name: str, given: Any) -> None:
    section = model(**{name: given})
    assert section.resolved(name, {}) == KEY
    for shown in (
        repr(section),
        str(section),
        section.model_dump_json(),
        repr(section.model_dump()),
    ):
        assert KEY not in shown
        assert KEY[8:20] not in shown
    assert section.model_dump(mode="json")[name] == "*" * 10


@pytest.mark.parametrize(("model", "name"), WITH_SECRETS)
@pytest.mark.parametrize(
    "value", [f"{KEY} and more", f"{KEY}\n\n{KEY}", f"{KEY}ü", [KEY], {KEY: 1}, KEY.encode(), 7, "",
              " ", "${A-B}", "pre${NAME}", "${}", "*" * 10]
)  # fmt: skip
def test_what_can_be_no_secret_is_refused_unseen(
    model: type[ConfigSection], name: str, value: Any
) -> None:
    with pytest.raises(ValidationError) as caught:
        model(**{name: value})
    error = caught.value
    assert [fault["loc"] for fault in error.errors()] == [(name,)]
    for shown in (str(error), repr(error.errors())):
        assert KEY[:20] not in shown


@pytest.mark.parametrize("name", ["apikey", "api-key", "token", "Password", "client_secret"])
def test_a_secret_under_a_mistyped_name_is_refused_unseen(name: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SystemConfig.model_validate({"llm": {name: KEY}})
    assert caught.value.errors()[0]["loc"] == ("llm", name)
    assert KEY[:20] not in repr(caught.value.errors())


def test_an_address_with_a_password_is_not_shown() -> None:
    address = "http://ann:plum-tree@127.0.0.1/v1"
    section = LLMConfig(base_url=address)
    assert "plum-tree" not in repr(section)
    assert section.resolved("base_url") == address
    with pytest.raises(ValidationError) as caught:
        LLMConfig(base_url=f"{address}\x00")
    assert "plum-tree" not in repr(caught.value.errors())


# References ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("${OPENAI_API_KEY}", "OPENAI_API_KEY"), ("${_x9}", "_x9"), ("$OPENAI_API_KEY", None),
        ("${9x}", None), ("${A}b", None), ("a${A}", None), ("${A}\n", None), ("${A B}", None),
        ("${}", None), ("", None), (None, None), ("${A}${B}", None),
    ],
)  # fmt: skip
def test_a_reference_is_a_whole_value(text: str | None, name: str | None) -> None:
    assert reference_in(text) == name


def test_a_key_is_looked_up_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    section = LLMConfig(api_key=SecretStr("${PLUM_KEY}"))
    with pytest.raises(ConfigurationError, match=r"llm\.api_key is \$\{PLUM_KEY\}.* not set: set"):
        section.resolved_api_key({})
    with pytest.raises(ConfigurationError, match="PLUM_KEY is not set"):
        section.resolved_api_key({"PLUM_KEY": " \n", "OPENAI_API_KEY": "other"})
    assert section.resolved_api_key({"PLUM_KEY": f"{KEY}\n"}) == KEY
    monkeypatch.setenv("PLUM_KEY", "from-the-process")
    assert section.resolved_api_key() == "from-the-process"
    with pytest.raises(ConfigurationError) as caught:
        section.resolved_api_key({"PLUM_KEY": f"{KEY}ü"})
    assert "llm.api_key" in str(caught.value)
    assert KEY[:20] not in str(caught.value)


def test_without_a_key_it_is_the_one_in_the_providers_own_variable() -> None:
    environ = {"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a"}
    assert OpenAIConfig().resolved_api_key(environ) == "o"
    assert AnthropicConfig().resolved_api_key(environ) == "a"
    assert EmbedderConfig().resolved_api_key(environ) == "o"
    assert EmbedderConfig(provider="huggingface").resolved_api_key(environ) is None
    assert VectorStoreConfig().resolved_api_key(environ) is None
    assert OpenAIConfig(api_key=SecretStr("mine")).resolved_api_key(environ) == "mine"
    assert OpenAIConfig().resolved_api_key({}) is None


def test_the_settings_of_a_model_are_whole_and_looked_up() -> None:
    section = LLMConfig.model_validate(
        {"api_key": "${K}", "model": "${M}", "base_url": "${U}", "temperature": 1,
         "custom_update_memory_prompt": "Decide about ${this}."}
    )  # fmt: skip
    assert section.settings({"K": "key", "M": "gpt-x", "U": "http://127.0.0.1/v1"}) == {
        "provider": "openai",
        "api_key": "key",
        "model": "gpt-x",
        "temperature": 1.0,
        "max_tokens": 1000,
        "timeout": 30,
        "max_retries": 3,
        "custom_update_memory_prompt": "Decide about ${this}.",
        "base_url": "http://127.0.0.1/v1",
    }
    with pytest.raises(ConfigurationError, match=r"llm\.model is \$\{M\}"):
        section.settings({"K": "key"})
    assert "api_key" not in OpenAIConfig(model="x").settings({})


@pytest.mark.parametrize(
    ("section", "setting", "value"),
    [
        ("performance", "cache_size", 10),
        ("performance", "parallel_requests", 2),
        ("monitoring", "metrics_endpoint", "http://localhost:9090"),
    ],
)
def test_a_setting_that_does_nothing_says_so(
    section: str, setting: str, value: object, caplog: pytest.LogCaptureFixture
) -> None:
    load_system_config({section: {}}, {})
    assert caplog.text == ""
    load_system_config({section: {setting: value}}, {})
    assert f"{section}.{setting} has no effect" in caplog.text


def test_monitoring_sets_the_level_of_the_log() -> None:
    logger = logging.getLogger("agent_memory")
    before = logger.level
    try:
        memory_arguments(load_system_config({"monitoring": {"log_level": "ERROR"}}, {}))
        assert logger.level == before
        settings = {"monitoring": {"enabled": True, "log_level": "ERROR"}}
        memory_arguments(load_system_config(settings, {}))
        assert logger.level == logging.ERROR
    finally:
        logger.setLevel(before)
