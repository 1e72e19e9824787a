"""Keys, passwords and addresses in settings: used, and never shown."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from agent_memory import AgentMemory, ConfigurationError, MemoryToolConfig, ValidationError
from agent_memory.embeddings.openai import OpenAIEmbedder
from agent_memory.embeddings.settings import EmbedderSettings

SECRET = "hunter2-0123456789"


@pytest.mark.parametrize(
    "settings",
    [
        {"embedding_token": SECRET},
        {"client_secret": SECRET},
        {"Password": [SECRET]},
        {"embedding_api_kye": None, "api_key": SECRET},
        {"embedding_base_url": [f"http://me:{SECRET}@host/v1"]},
        {"embedding_base_url": f"http://me:{SECRET}@host/\x00"},
        {"embedding_base_url": SecretStr(f"http://me:{SECRET}@host/")},
    ],
)
def test_a_secret_in_a_wrong_setting_is_not_shown(tmp_path: Any, settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        AgentMemory("bob", root=tmp_path, config=settings)
    shown = f"{caught.value} {caught.value.errors()} {caught.value.__cause__}"
    assert SECRET not in shown


@pytest.mark.parametrize(
    "url",
    [
        f"http://127.0.0.1:9/v1?api-key={SECRET}",
        f"http://127.0.0.1:9/v1#{SECRET}",
        f"127.0.0.1:9/v1?api-key={SECRET}",
        f"http://me:{SECRET}?@host:x/v1",
        f"host/v1?key=a@{SECRET}",
        ["http://127.0.0.1", SECRET],
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_showing_it(url: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"(?i)base_url") as caught:
        OpenAIEmbedder(base_url=url)
    assert SECRET not in str(caught.value)


def test_an_address_without_secrets_is_shown() -> None:
    with pytest.raises(ConfigurationError, match="'ftp://host/v1' is not a web address"):
        OpenAIEmbedder(base_url="ftp://host/v1")


def test_settings_do_not_print_the_address() -> None:
    url = f"http://me:{SECRET}@host/v1"
    assert SECRET not in repr(EmbedderSettings(base_url=url, api_key=SECRET))
    config = MemoryToolConfig(embedding_base_url=url, embedding_api_key=SECRET)
    assert SECRET not in repr(config)


def test_a_dump_keeps_the_key_covered() -> None:
    config = MemoryToolConfig.model_validate({"embedding_api_key": SECRET})
    key = config.model_dump()["embedding_api_key"]
    assert isinstance(key, SecretStr)
    assert MemoryToolConfig.model_validate(config.model_dump()) == config
    assert SECRET not in config.model_dump_json()
