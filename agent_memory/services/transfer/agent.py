"""Import of a file's data about its agent: the settings and some figures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from agent_memory.models.portable import StagedEntry
from agent_memory.models.reports import ImportOptions, Plan
from agent_memory.storage.change_records import VECTOR_COLUMNS
from agent_memory.storage.engine import Engine

_OF_THE_OWNER: Final = frozenset({"sharing", "auto_migrate", "on_secret", "event_log"})


class AgentImporter:
    """Imports one file's data about its agent into one store, after its memories.

    Must run inside a transaction; a dry run needs only ``read()``. What is done is noted in the
    ``plan``. ``was_empty`` is whether the store had no memories before.
    """

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        options: ImportOptions,
        *,
        was_empty: bool,
    ) -> None:
        self._engine = engine
        self._plan = plan
        self._options = options
        self._was_empty = was_empty
        self._agent: dict[str, Any] = {}
        self._categories: set[object] = set()

    def take(self, page: Sequence[StagedEntry]) -> None:
        """Collect what a file says about its agent."""
        for entry in page:
            config = {**self._agent.get("config", {}), **(entry.values.get("config") or {})}
            self._agent |= {**entry.values, "config": config}

    def expect(self, category: object) -> None:
        """Record the category of an imported memory."""
        self._categories.add(category)

    def finish(self, *, has_model: bool) -> None:
        """Import what was collected; with ``has_model``, also what it says about vectors."""
        self._settings()
        self._figures(has_model=has_model)

    @property
    def _has_memories(self) -> bool:
        """Return whether the file has any memory that could be imported."""
        return self._plan.new + self._plan.same + self._plan.changed + self._plan.kept > 0

    def _settings(self) -> None:
        """Import the agent's settings from the file, as far as the store has none of its own."""
        config = self._agent.get("config", {})
        own = self._engine.agent.config().model_dump(exclude_unset=True)
        if left_out := [name for name in sorted(config) if self._is_refused(name, config, own)]:
            config = {name: value for name, value in config.items() if name not in left_out}
            whose = " of another agent" * self._options.is_foreign
            self._plan.notes.append(f"settings{whose} skipped: {', '.join(left_out)}")
        taken = self._settings_to_take(config, own)
        categories = {**own, **taken}.get("categories", [])
        if new := [each for each in config.get("categories", ()) if self._is_new(each, categories)]:
            taken["categories"] = [*categories, *new]
            self._plan.notes.append(f"categories of its memories added: {', '.join(new)}")
        self._plan.settings = {k: v for k, v in taken.items() if own.get(k) != v}
        if taken and not self._options.dry_run:
            self._engine.agent.merge_config(taken)

    def _is_new(self, category: str, known: Collection[str]) -> bool:
        """Return whether a category came with a memory, and is not among the agent's own."""
        return category in self._categories and category not in known

    def _settings_to_take(
        self, config: Mapping[str, Any], own: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the settings to import, and note which are left out."""
        has_memories = self._has_memories
        if has_memories and not self._was_empty:
            if config:
                self._plan.notes.append("its settings are not imported: this store has memories")
            return {}
        is_wanted = (self._was_empty and has_memories) or self._options.on_conflict in (
            "replace",
            "newer",
        )
        taken = {k: v for k, v in config.items() if is_wanted or k not in own}
        if left := sorted(k for k, v in config.items() if k not in taken and own.get(k) != v):
            note = f"settings already set here are kept: {', '.join(left)}"
            self._plan.notes.append(note)
        return taken

    def _figures(self, *, has_model: bool) -> None:
        """Import the agent's figures from the file, where the store has none."""
        ignored = {"config", *(() if has_model else VECTOR_COLUMNS)}
        figures = {name: value for name, value in self._agent.items() if name not in ignored}
        if not figures:
            return
        names = ", ".join(figures)
        if not self._was_empty:
            self._plan.notes.append(f"figures skipped, because this store has its own: {names}")
        elif not self._has_memories:
            self._plan.notes.append(f"figures imported: {names}")
        if self._was_empty and not self._options.dry_run:
            self._engine.agent.set_row(figures)

    def _is_refused(self, name: str, config: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
        """Return whether only the owner may change a setting, and not a file.

        A file from elsewhere must not start a migration. None may open this store to others, or
        change what is done with secrets: any file can claim to belong to this agent.
        """
        if self._options.is_foreign:
            return name in _OF_THE_OWNER
        if name == "on_secret":
            return name in own and config[name] != own[name]
        return name == "sharing" and config[name] not in ("private", own.get(name))
