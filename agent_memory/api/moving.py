"""The verb that carries a whole memory elsewhere, and checks that it arrived."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from agent_memory.api.transfer import TransferVerbs
from agent_memory.errors import MigrationError, ValidationError
from agent_memory.models.enums import OnSecret
from agent_memory.models.fields import to_json
from agent_memory.models.portable import Section
from agent_memory.models.reports import MoveReport

if TYPE_CHECKING:
    from agent_memory.api.opening import MemoryOptions
    from agent_memory.formats.protocol import Source
    from agent_memory.models.agent import AgentConfig
    from agent_memory.models.portable import Entry


class _Content(NamedTuple):
    """What a store holds: the number of entries of each section, and a hash of those."""

    counts: dict[Section, int]
    digests: dict[Section, str]


class MoveVerbs(TransferVerbs):
    """Moving. ``AgentMemory`` has this verb."""

    def move_to(
        self,
        root: str | os.PathLike[str],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> MoveReport:
        """Carry everything to the same agent under another root, and check that it is there.

        ``root`` is a folder, or the address of a database, as ``AgentMemory`` takes it. Ids,
        history, graph, vectors, settings, rejections and what is known as erased go with the
        memories. The agent must have no memories there. What it has here stays as it is, and
        nobody writes to it meanwhile: who tries waits, or is told that it is locked.

        It is there whole or not at all, whenever this is killed: then move again. Where that was
        done already, nothing changes. ``progress`` is called with how many entries are done, of how
        many; of 0 while they are read. Raises ``ValidationError`` where the agent has other
        memories there, ``MigrationError`` where what arrived is not the same, ``StorageError``.
        """
        tell = progress or (lambda _done, _of: None)
        options: MemoryOptions = {**self._options, "create": True, "read_only": False}
        with type(self)(self.agent_id, root=root, **options) as other:
            self._refuse_own_place(other, root)
            with self._store.transfer.held():
                with self.dump(embeddings=True) as source:
                    here = _content(source.entries())
                if other._store.count_all():
                    notes = ["it was there already: nothing was changed"]
                    if other._content() != here:
                        raise _taken(root, other.agent_id)
                else:
                    with self.dump(embeddings=True) as source:
                        notes = other._settle(source, self._store.config(), tell)
                other._refuse_difference(here)
            return MoveReport(
                source=self._store.location,
                target=other._store.location,
                memory_count=here.counts.get(Section.MEMORY, 0),
                counts={section.value: count for section, count in here.counts.items()},
                notes=[*notes, *self._left_behind()],
            )

    def _refuse_own_place(self, other: MoveVerbs, root: str | os.PathLike[str]) -> None:
        if other._store.location == self._store.location:
            raise ValidationError.of("root", "is where the memory is already", str(root))

    def _settle(
        self, source: Source, config: AgentConfig, tell: Callable[[int, int], None]
    ) -> list[str]:
        """Take in what another store of this agent holds; return what is to be noted of it."""
        from agent_memory.services.transfer.staging import Staging  # noqa: PLC0415 - seldom used

        with Staging(
            config.categories, session_id=self.session_id, on_secret=OnSecret.KEEP.value
        ) as intake:
            for done in intake.read(source.entries()):
                tell(done, 0)
            intake.raise_refusal(self.path)
            plan = self._take_in(
                intake, "skip", include_erased=False, dry_run=False, lenient=False, tell=tell
            )
        # An import leaves out what a stranger's file must not decide, such as who may read.
        self._store.change_config(lambda _: config)
        self._store.lifecycle.forbid_undo("move", session_id=self.session_id)
        return plan.notes

    def _content(self) -> _Content:
        with self.dump(embeddings=True) as source:
            return _content(source.entries())

    def _refuse_difference(self, wanted: _Content) -> None:
        arrived = self._content()
        if wrong := [each for each in Section if wanted.digests[each] != arrived.digests[each]]:
            named = ", ".join(
                f"{section.value} ({wanted.counts.get(section, 0):,} there,"
                f" {arrived.counts.get(section, 0):,} arrived)"
                for section in wrong
            )
            raise MigrationError(
                f"what arrived at {self._store.location} is not the same: {named}. Nothing was"
                " changed where it came from: go on there, and report this"
            )

    def _left_behind(self) -> list[str]:
        """Say what is not carried along."""
        columns = self._store.foreign_columns()
        added = [f"columns added by hand: {', '.join(columns)}"] if columns else []
        return [f"left behind: {each}" for each in ("backups and the event log", *added)]


def _content(entries: Iterable[Entry]) -> _Content:
    counts: Counter[Section] = Counter()
    hashes = {section: hashlib.sha256() for section in Section}
    for section, fields, *_ in entries:
        counts[section] += 1
        if section is Section.AGENT:
            fields.pop("last_accessed", None)  # to look is an access
        hashes[section].update(to_json(fields).encode() + b"\n")
    return _Content(dict(counts), {section: each.hexdigest() for section, each in hashes.items()})


def _taken(root: str | os.PathLike[str], agent_id: str) -> ValidationError:
    message = (
        f"has memories of {agent_id} that are not those of here: `import` an `export` to join them"
    )
    return ValidationError.of("root", message, os.fspath(root))
