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
from agent_memory.formats import json_reader as json_text
from agent_memory.formats.json_reader import JsonItem
from agent_memory.formats.protocol import Sample, Source, Written
from agent_memory.formats.yaml_reader import read_items
from agent_memory.models.agent import AgentConfig, AgentStats, MigrationInfo
from agent_memory.models.portable import Entry, Section
from agent_memory.runtime.files import read_steadily, written_atomically

MAX_BYTES: Final = 1_000_000
"""The longest file of settings that is read."""

_KEYS: Final = (
    "agent_id", "created_at", "memory_count", "storage_backend", "migration_date",
    "last_accessed", "stats", "config", "migration",
)  # fmt: skip
_CONFIG_OF_A: Final = (
    "scratchpad_max_size", "migration_threshold", "auto_migrate", "embedding_model",
    "similarity_threshold",
)  # fmt: skip
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
"""B's names of the settings of the migration, and ours."""
_NOT_OURS: Final = "is not read here"
_OF_THE_HOST: Final = "is for the host of the session"
_YAML_BEGINS: Final = re.compile(r"^(memory|session)\s*:", re.MULTILINE)
_YAML_HAS: Final = re.compile(r"\b(migration|agent_identity)\s*:")


class MetadataJson:
    """``metadata.json`` as A has it. Its figures are written, and not read: a store has its own."""

    name = "metadata"
    is_folder = False
    skips_bad = False

    def recognises(self, sample: Sample) -> bool:
        """Return whether it is an object that tells an agent's settings or figures, whole."""
        text = sample.text()
        if sample.is_folder or not text.startswith("{"):
            return False
        try:
            told = json_text.parse(text)
        except ValidationError:
            return False
        is_memory = "content" in told or "type" in told
        return "agent_id" in told and any(mark in told for mark in _MARKS) and not is_memory

    def read(self, path: Path) -> Iterator[Entry]:
        """Yield the agent: its id, and the settings that are told."""
        try:
            items = list(json_text.read_items(io.BytesIO(_content(path))))
        except ValidationError as error:
            raise ValidationError(f"{path}: {error}") from error
        if len(items) != 1:
            raise ValidationError(f"{path}: holds {len(items)} JSON values, not one object")
        yield _entry(lambda: _told_by_json(items[0]), f"line {items[0].line}")

    def write(self, path: Path, source: Source) -> Written:
        """Write A's keys in A's order; ``config`` has our further settings where they are set."""
        metadata = source.metadata()
        told = metadata.model_dump(mode="json", include=set(_KEYS))
        for name, keys in _PARTS.items():
            part = told[name]
            told[name] = part and {key: part[key] for key in keys}
        config = metadata.config.model_dump(mode="json")
        further = [name for name in _changed(metadata.config) if name not in _CONFIG_OF_A]
        told["config"] = {name: config[name] for name in (*_CONFIG_OF_A, *further)}
        text = json.dumps({name: told[name] for name in _KEYS}, indent=2, ensure_ascii=False)
        with written_atomically(path) as file:
            file.write(text.encode() + b"\n")
        return Written(notes=["only the settings and figures: `store` has the memories"])


class SettingsYaml:
    """The settings of the migration as B has them, and B's block of a session's agent."""

    name = "settings"
    is_folder = False
    skips_bad = False

    def recognises(self, sample: Sample) -> bool:
        """Return whether one of the two blocks stands in it."""
        text = sample.text()
        if sample.is_folder or text.startswith(("{", "[")):
            return False
        return bool(_YAML_BEGINS.search(text) and _YAML_HAS.search(text))

    def read(self, path: Path) -> Iterator[Entry]:
        """Yield the agent: its id, if a session names it, and the settings that are told."""
        blocks: dict[str, object] = {}
        for item in read_items(path):
            if item.error is not None:
                yield Entry(Section.AGENT, {}, f"line {item.line}", item.error)
                return
            blocks[item.key] = item.value if item.number is None else []
        yield _entry(lambda: _told_by_yaml(blocks), "line 1")

    def write(self, path: Path, source: Source) -> Written:
        """Write the three settings of the migration; what other settings say is noted."""
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
        notes = [f"the setting {name} has no place here: `metadata` has it" for name in left]
        return Written(notes=["only the settings of migration: `store` has the memories", *notes])


@dataclass(slots=True)
class _Told:
    """What a file tells of an agent, and what of it is not taken."""

    fields: dict[str, Any] = field(default_factory=dict)
    repairs: list[str] = field(default_factory=list)

    def leave_out(self, names: Iterable[str], reason: str) -> None:
        self.repairs += [f"{name} {reason}: left out" for name in names]


def _entry(read: Callable[[], _Told], place: str) -> Entry:
    try:
        told = read()
    except ValidationError as error:
        return Entry(Section.AGENT, {}, place, str(error))
    return Entry(Section.AGENT, told.fields, place, None, tuple(told.repairs))


def _told_by_json(item: JsonItem) -> _Told:
    if item.error is not None:
        raise ValidationError(item.error)
    if item.value is None:
        raise ValidationError("tells nothing: metadata.json is an object")
    found, told = _mapping(item.value, "the file"), _Told()
    if found.get("agent_id") is not None:
        told.fields["agent_id"] = found["agent_id"]
    told.leave_out((name for name in found if name not in _KEYS), "is no key of metadata.json")
    config = found.get("config")
    if config is not None:
        settings = _mapping(config, "config")
        # A file tells all settings. One that has its default was hardly set by anybody, and to set
        # it means something: a threshold of similarity, that weaker hits are dropped.
        defaults = AgentConfig.defaults()
        told.fields["config"] = {
            name: value
            for name, value in settings.items()
            if name in AgentConfig.model_fields
            and value is not None
            and value != getattr(defaults, name)
        }
        told.leave_out(
            (f"config.{name}" for name in settings if name not in AgentConfig.model_fields),
            "is no setting",
        )
    return told


def _told_by_yaml(blocks: dict[str, object]) -> _Told:
    told = _Told()
    told.leave_out((name for name in blocks if name not in ("memory", "session")), _NOT_OURS)
    _tell_migration(_mapping(blocks.get("memory"), "memory"), told)
    _tell_session(_mapping(blocks.get("session"), "session"), told)
    if not told.fields:
        raise ValidationError(
            "tells nothing: memory.migration or session.capabilities.agent_identity is needed"
        )
    return told


def _tell_migration(memory: dict[str, Any], told: _Told) -> None:
    told.leave_out((f"memory.{name}" for name in memory if name != "migration"), _NOT_OURS)
    migration = _mapping(memory.get("migration"), "memory.migration")
    config = {
        ours: migration[name] for name, ours in _IN_YAML.items() if migration.get(name) is not None
    }
    if config:
        told.fields["config"] = config
    unknown = (f"memory.migration.{name}" for name in migration if name not in _IN_YAML)
    told.leave_out(unknown, "is no setting")


def _tell_session(session: dict[str, Any], told: _Told) -> None:
    told.leave_out((f"session.{name}" for name in session if name != "capabilities"), _NOT_OURS)
    capabilities = _mapping(session.get("capabilities"), "session.capabilities")
    for name, value in capabilities.items():
        if name == "agent_identity" and value is not None:
            told.fields["agent_id"] = value
        elif isinstance(value, dict):
            told.leave_out((f"session.capabilities.{name}.{key}" for key in value), _OF_THE_HOST)
        else:
            told.leave_out([f"session.capabilities.{name}"], _OF_THE_HOST)


def _mapping(value: object, name: str) -> dict[str, Any]:
    """Return a mapping; what is not told is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValidationError(f"{name}: is a {type(value).__name__}, where keys with values belong")
    return value


def _changed(config: AgentConfig) -> list[str]:
    """Return the names of the settings that are not as they are without being set."""
    usual = AgentConfig.defaults()
    return [
        name for name in AgentConfig.model_fields if getattr(config, name) != getattr(usual, name)
    ]


def _content(path: Path) -> bytes:
    with read_steadily(path) as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValidationError(f"{path}: is longer than {MAX_BYTES:,} bytes: it holds no settings")
    return content


CODEC: Final = MetadataJson()
CODEC_YAML: Final = SettingsYaml()
