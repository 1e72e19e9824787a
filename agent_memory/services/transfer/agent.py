"""Import of what a file tells of its agent: the settings, and figures beside them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from agent_memory.models.portable import StagedEntry
from agent_memory.models.reports import OnConflict, Plan
from agent_memory.storage.change_records import VECTOR_COLUMNS
from agent_memory.storage.engine import Engine

_OF_THE_OWNER: Final = frozenset({"sharing", "auto_migrate", "on_secret", "event_log"})


class AgentImporter:
    """Imports what one file tells of its agent into one store, once its memories are there.

    Must run inside a transaction; ``dry_run`` needs only ``read()``. What is done is noted in the
    ``plan``. ``is_foreign`` says that the file is of another agent, ``was_empty`` that the store
    had no memories before.
    """

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        *,
        on_conflict: OnConflict,
        is_foreign: bool,
        was_empty: bool,
        dry_run: bool,
    ) -> None:
        self._engine = engine
        self._plan = plan
        self._on_conflict = on_conflict
        self._is_foreign = is_foreign
        self._was_empty = was_empty
        self._dry_run = dry_run
        self._agent: dict[str, Any] = {}
        self._categories: set[object] = set()

    def take(self, page: Sequence[StagedEntry]) -> None:
        """Note what a file tells of its agent."""
        for entry in page:
            config = {**self._agent.get("config", {}), **(entry.values.get("config") or {})}
            self._agent |= {**entry.values, "config": config}

    def expect(self, category: object) -> None:
        """Note the category of a memory that is taken in."""
        self._categories.add(category)

    def finish(self, *, has_model: bool) -> None:
        """Take over what was noted; ``has_model``: what it tells of vectors too."""
        self._settings()
        self._figures(has_model=has_model)

    @property
    def _has_memories(self) -> bool:
        """Whether the file has any memory that could be taken in."""
        return self._plan.new + self._plan.same + self._plan.changed + self._plan.kept > 0

    def _settings(self) -> None:
        """Take over the agent's settings of the file, where the store has none of its own."""
        config = self._agent.get("config", {})
        own = self._engine.agent.config().model_dump(exclude_unset=True)
        if left_out := [name for name in sorted(config) if self._is_refused(name, config, own)]:
            config = {name: value for name, value in config.items() if name not in left_out}
            whose = " of another agent" * self._is_foreign
            self._plan.notes.append(f"settings{whose} left out: {', '.join(left_out)}")
        taken = self._settings_to_take(config, own)
        categories = {**own, **taken}.get("categories", [])
        if new := [each for each in config.get("categories", ()) if self._is_new(each, categories)]:
            taken["categories"] = [*categories, *new]
            self._plan.notes.append(f"categories of its memories are added: {', '.join(new)}")
        self._plan.settings = {k: v for k, v in taken.items() if own.get(k) != v}
        if taken and not self._dry_run:
            self._engine.agent.merge_config(taken)

    def _is_new(self, category: str, known: Collection[str]) -> bool:
        """Return whether a category came with a memory, and would not be one of this agent's."""
        return category in self._categories and category not in known

    def _settings_to_take(
        self, config: Mapping[str, Any], own: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the settings to be taken over, and note which are not."""
        has_memories = self._has_memories
        if has_memories and not self._was_empty:
            if config:
                self._plan.notes.append("its settings are left alone: this store has memories")
            return {}
        is_wanted = (self._was_empty and has_memories) or self._on_conflict in ("replace", "newer")
        taken = {k: v for k, v in config.items() if is_wanted or k not in own}
        if left := sorted(k for k, v in config.items() if k not in taken and own.get(k) != v):
            note = f"settings that are set here already stay: {', '.join(left)}"
            self._plan.notes.append(note)
        return taken

    def _figures(self, *, has_model: bool) -> None:
        """Take over what a file tells of the agent beside its settings, where nothing is here."""
        ignored = {"config", *(() if has_model else VECTOR_COLUMNS)}
        figures = {name: value for name, value in self._agent.items() if name not in ignored}
        if not figures:
            return
        names = ", ".join(figures)
        if not self._was_empty:
            self._plan.notes.append(f"figures left out, for this store has its own: {names}")
        elif not self._has_memories:
            self._plan.notes.append(f"figures taken over: {names}")
        if self._was_empty and not self._dry_run:
            self._engine.agent.set_row(figures)

    def _is_refused(self, name: str, config: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
        """Return whether a setting is for the owner to make, and not for a file.

        One from elsewhere must not start a move. None must open this store to others, nor change
        what is done with secrets: any file can say that it is of this agent.
        """
        if self._is_foreign:
            return name in _OF_THE_OWNER
        if name == "on_secret":
            return name in own and config[name] != own[name]
        return name == "sharing" and config[name] not in ("private", own.get(name))
