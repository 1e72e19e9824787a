"""An agent's settings: A's ``metadata.json``, and the YAML of B's configuration."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agent_memory.errors import ValidationError
from agent_memory.formats import json_reader
from agent_memory.formats.json_reader import JsonItem
from agent_memory.formats.protocol import Codec, Sample, Source, Written
from agent_memory.formats.yaml_reader import read_items
from agent_memory.models.agent import AgentConfig, AgentStats, MigrationInfo
from agent_memory.models.portable import Entry, Section
from agent_memory.models.record import validated
from agent_memory.runtime.files import read_steadily, written_atomically

MAX_BYTES: Final = 1_000_000
"""The longest settings file that is read, in bytes."""

_KEYS: Final = (
    "agent_id", "created_at", "memory_count", "storage_backend", "migration_date",
    "last_accessed", "stats", "config", "migration",
)  # fmt: skip
_CONFIG_OF_A: Final = (
    "scratchpad_max_size", "migration_threshold", "auto_migrate", "embedding_model",
    "similarity_threshold",
)  # fmt: skip
_COUNTED: Final = "is counted again here"
_OF_VECTORS: Final = "describes vectors, which the file does not contain"
_PARTS: Final = {
    "stats": tuple(AgentStats.model_fields),
    "migration": tuple(MigrationInfo.model_fields),
}
_MARKS: Final = ("storage_backend", "config", "stats")
_IN_YAML: Final = {
    "threshold": "migration_threshold",
    "auto_migrate": "auto_migrate",
    "strategy": "migration_strategy",
}
"""B's names for the settings of the migration, and ours."""
_NOT_OURS: Final = "is not a setting of agent-memory"
_OF_THE_HOST: Final = "is for the session's host"
_YAML_BEGINS: Final = re.compile(r"^(memory|session)\s*:", re.MULTILINE)
_YAML_HAS: Final = re.compile(r"\b(migration|agent_identity)\s*:")


class MetadataJson(Codec):
    """A's ``metadata.json``: an agent's settings and figures."""

    name = "metadata"

    def recognises(self, sample: Sample) -> bool:
        """Return whether it is a complete object with an agent's settings or figures."""
        text = sample.text()
        if sample.is_folder or not text.startswith("{"):
            return False
        try:
            document = json_reader.parse(text)
        except ValidationError:
            return False
        is_memory = "content" in document or "type" in document
        return "agent_id" in document and any(mark in document for mark in _MARKS) and not is_memory

    def read(self, path: Path) -> Iterator[Entry]:
        """Yield the agent: its id, the settings, and the figures in the file.

        Figures that are counted again here, and those about vectors, are reported as left out.
        """
        try:
            items = list(json_reader.read_items(io.BytesIO(_content(path))))
        except ValidationError as error:
            raise ValidationError(f"{path}: {error}") from error
        if len(items) != 1:
            raise ValidationError(f"{path}: holds {len(items)} JSON values, not one object")
        yield _entry(lambda: _agent_of_json(items[0]), f"line {items[0].line}")

    def write(self, path: Path, source: Source) -> Written:
        """Write A's keys in A's order; ``config`` also has our other settings if they are set."""
        metadata = source.metadata()
        document = metadata.model_dump(mode="json", include=set(_KEYS))
        for name, keys in _PARTS.items():
            part = document[name]
            document[name] = part and {key: part[key] for key in keys}
        config = metadata.config.model_dump(mode="json")
        further = [name for name in _changed(metadata.config) if name not in _CONFIG_OF_A]
        document["config"] = {name: config[name] for name in (*_CONFIG_OF_A, *further)}
        text = json.dumps({name: document[name] for name in _KEYS}, indent=2, ensure_ascii=False)
        with written_atomically(path) as file:
            file.write(text.encode() + b"\n")
        return Written(notes=["only the settings and figures: `store` has the memories"])


class SettingsYaml(Codec):
    """B's settings of the migration, and B's block about a session's agent."""

    name = "settings"

    def recognises(self, sample: Sample) -> bool:
        """Return whether it contains one of the two blocks."""
        text = sample.text()
        if sample.is_folder or text.startswith(("{", "[")):
            return False
        return bool(_YAML_BEGINS.search(text) and _YAML_HAS.search(text))

    def read(self, path: Path) -> Iterator[Entry]:
        """Yield the agent: its id, if a session names it, and the settings in the file."""
        blocks: dict[str, object] = {}
        for item in read_items(path):
            if item.error is not None:
                yield Entry(Section.AGENT, {}, f"line {item.line}", item.error)
                return
            blocks[item.key] = item.value if item.number is None else []
        yield _entry(lambda: _agent_of_yaml(blocks), "line 1")

    def write(self, path: Path, source: Source) -> Written:
        """Write the three settings of the migration; a note names the other settings."""
        config = source.metadata().config
        lines = (
            "memory:",
            "  migration:",
            f"    threshold: {config.migration_threshold}",
            f"    auto_migrate: {json.dumps(config.auto_migrate)}",
            f"    strategy: {json.dumps(config.migration_strategy)}",
        )
        with written_atomically(path) as file:
            file.write("".join(f"{line}\n" for line in lines).encode())
        left = [name for name in _changed(config) if name not in _IN_YAML.values()]
        notes = [f"the setting {name} has no place in this format: use `metadata`" for name in left]
        return Written(notes=["only the settings of migration: `store` has the memories", *notes])


@dataclass(slots=True)
class _AgentFields:
    """The values about an agent in a file, and those that are not imported."""

    fields: dict[str, Any] = field(default_factory=dict)
    repairs: list[str] = field(default_factory=list)

    def leave_out(self, names: Iterable[str], reason: str) -> None:
        self.repairs += [f"{name} {reason}: skipped" for name in names]


def _entry(read: Callable[[], _AgentFields], place: str) -> Entry:
    try:
        agent = read()
    except ValidationError as error:
        return Entry(Section.AGENT, {}, place, str(error))
    return Entry(Section.AGENT, agent.fields, place, None, tuple(agent.repairs))


def _agent_of_json(item: JsonItem) -> _AgentFields:
    if item.error is not None:
        raise ValidationError(item.error)
    if item.value is None:
        raise ValidationError("is empty: metadata.json must be an object")
    document, agent = _mapping(item.value, "the file"), _AgentFields()
    if document.get("agent_id") is not None:
        agent.fields["agent_id"] = document["agent_id"]
    agent.leave_out(
        (name for name in document if name not in _KEYS), "is not a key of metadata.json"
    )
    config = document.get("config")
    if config is not None:
        settings = _mapping(config, "config")
        # A file has all settings. One at its default was probably never set by anyone, and setting
        # it has an effect: a similarity threshold, for one, drops weaker hits.
        defaults = AgentConfig.defaults()
        agent.fields["config"] = {
            name: value
            for name, value in settings.items()
            if name in AgentConfig.model_fields
            and value is not None
            and value != getattr(defaults, name)
        }
        agent.leave_out(
            (f"config.{name}" for name in settings if name not in AgentConfig.model_fields),
            "is not a setting",
        )
    _take_figures(document, agent)
    return agent


def _take_figures(document: dict[str, Any], agent: _AgentFields) -> None:
    """Take the figures that only the file knows, and name the others."""
    for name in ("created_at", "last_accessed"):
        if document.get(name) is not None:
            agent.fields[name] = document[name]
    stats = _mapping(document.get("stats"), "stats")
    figures = _stats_of(stats)
    for name in ("total_queries", "scratchpad_promotions"):
        if name in figures.model_fields_set:
            agent.fields[name] = getattr(figures, name)
    if figures.total_queries:
        agent.fields["total_query_ms"] = figures.total_queries * figures.avg_query_latency_ms
    agent.leave_out((f"stats.{name}" for name in stats if name not in _PARTS["stats"]), _NOT_OURS)
    counted = {
        "memory_count": document.get("memory_count"),
        "stats.storage_size_mb": figures.storage_size_mb,
    }
    names = (f"{name} ({figure})" for name, figure in counted.items() if figure)
    agent.leave_out(names, _COUNTED)
    of_vectors = {
        "storage_backend": document.get("storage_backend") not in (None, "file"),
        "migration_date": document.get("migration_date"),
        "stats.embeddings_generated": figures.embeddings_generated,
        "migration": document.get("migration"),
    }
    agent.leave_out((name for name, is_told in of_vectors.items() if is_told), _OF_VECTORS)


def _stats_of(stats: dict[str, Any]) -> AgentStats:
    figures = {
        name: value
        for name, value in stats.items()
        if name in AgentStats.model_fields and value is not None
    }
    return validated(AgentStats, figures, at=("stats",))


def _agent_of_yaml(blocks: dict[str, object]) -> _AgentFields:
    agent = _AgentFields()
    agent.leave_out((name for name in blocks if name not in ("memory", "session")), _NOT_OURS)
    _take_migration(_mapping(blocks.get("memory"), "memory"), agent)
    _take_session(_mapping(blocks.get("session"), "session"), agent)
    if not agent.fields:
        raise ValidationError(
            "contains no settings: memory.migration or session.capabilities.agent_identity is"
            " required"
        )
    return agent


def _take_migration(memory: dict[str, Any], agent: _AgentFields) -> None:
    agent.leave_out((f"memory.{name}" for name in memory if name != "migration"), _NOT_OURS)
    migration = _mapping(memory.get("migration"), "memory.migration")
    config = {
        ours: migration[name] for name, ours in _IN_YAML.items() if migration.get(name) is not None
    }
    if config:
        agent.fields["config"] = config
    unknown = (f"memory.migration.{name}" for name in migration if name not in _IN_YAML)
    agent.leave_out(unknown, "is not a setting")


def _take_session(session: dict[str, Any], agent: _AgentFields) -> None:
    agent.leave_out((f"session.{name}" for name in session if name != "capabilities"), _NOT_OURS)
    capabilities = _mapping(session.get("capabilities"), "session.capabilities")
    for name, value in capabilities.items():
        if name == "agent_identity" and value is not None:
            agent.fields["agent_id"] = value
        elif isinstance(value, dict):
            agent.leave_out((f"session.capabilities.{name}.{key}" for key in value), _OF_THE_HOST)
        else:
            agent.leave_out([f"session.capabilities.{name}"], _OF_THE_HOST)


def _mapping(value: object, name: str) -> dict[str, Any]:
    """Return a mapping; an absent one is empty."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValidationError(f"{name}: is a {type(value).__name__}, not a mapping")
    return value


def _changed(config: AgentConfig) -> list[str]:
    """Return the names of the settings that differ from their defaults."""
    usual = AgentConfig.defaults()
    return [
        name for name in AgentConfig.model_fields if getattr(config, name) != getattr(usual, name)
    ]


def _content(path: Path) -> bytes:
    with read_steadily(path) as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValidationError(
            f"{path}: is longer than {MAX_BYTES:,} bytes: this is not a settings file"
        )
    return content


CODEC: Final = MetadataJson()
CODEC_YAML: Final = SettingsYaml()
