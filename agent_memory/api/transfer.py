"""The verbs that export memories and import them, in any of the documented formats."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, cast, get_args

from agent_memory.api.arguments import Time, check_existing_path
from agent_memory.api.opening import OpenMemory
from agent_memory.errors import LimitReached, RejectedContent, ValidationError
from agent_memory.models.enums import OnSecret
from agent_memory.models.portable import added_by_hand
from agent_memory.models.reports import (
    ExportReport,
    ImportNote,
    ImportOptions,
    ImportReport,
    MoveReport,
    OnConflict,
    Plan,
)
from agent_memory.runtime import paths
from agent_memory.runtime.addresses import ServerAddress, is_server, server_address
from agent_memory.runtime.files import exposures, files_of, translated_errors
from agent_memory.runtime.logs import logger
from agent_memory.storage.opening import file_storage

if TYPE_CHECKING:
    from agent_memory.api.conversation_import import LearningMemory
    from agent_memory.formats.protocol import Reader, Source
    from agent_memory.models.owner import Owner
    from agent_memory.models.portable import Entry, PassedOver
    from agent_memory.services.transfer.staging import Staging

_MOST_LISTED: Final = 1_000
_WHOLE: Final = ("store", "sqlite")
_SETTINGS: Final = ("metadata", "settings")
_OF_ALL: Final = ("sqlite", *_SETTINGS)
_ONE_USERS: Final = (
    "the settings, graph, history and rejections are the agent's: they are not in the export of one"
    " user"
)


class TransferVerbs(OpenMemory):
    """Export and import. ``AgentMemory`` has these verbs."""

    @classmethod
    @contextlib.contextmanager
    def opened_copy(cls, path: str | os.PathLike[str]) -> Iterator[Self]:
        """Give the body a private copy of a memory file, opened; it goes with the body.

        The file itself is only read: an older one is brought up to date in the copy alone.
        """
        with (
            file_storage().private_copy(paths.resolve_file(path)) as copy,
            cls.open(copy, create=False) as memory,
        ):
            yield memory

    @contextlib.contextmanager
    def dump(self, *, embeddings: bool = False, as_of: Time | None = None) -> Iterator[Source]:
        """Give the body everything that the store holds, now or as of a time.

        ``embeddings`` says whether the vectors are wanted too.
        """
        with self._dump(embeddings=embeddings, as_of=as_of) as source:
            yield source

    @contextlib.contextmanager
    def _dump(
        self, *, embeddings: bool, as_of: Time | None, owner: Owner | None = None
    ) -> Iterator[Source]:
        with contextlib.ExitStack() as stack:
            memory = self if as_of is None else stack.enter_context(self._as_of(as_of))
            dump = memory._store.transfer.dump(embeddings=embeddings, owner=owner)
            yield stack.enter_context(dump)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "store",  # noqa: A002 - the option's name
        embeddings: bool = False,
        as_of: Time | None = None,
        user_id: str | None = None,
        run_id: str | None = None,
        overwrite: bool = False,
    ) -> ExportReport:
        """Write the store to a file, and report what was written and what the format cannot hold.

        ``format`` is one of ``agent_memory.formats.registry.names()``: ``store`` (YAML with
        everything in it, the portable backup), ``scratchpad``, ``backup``, ``metadata``,
        ``settings``, ``json``, ``jsonl``, ``record-json``, ``record-jsonl``, ``directory`` (of
        JSONL files) or ``sqlite``. The same store gives the same bytes. ``embeddings`` includes the
        vectors if the format can hold them; ``as_of`` writes the store as it was at a time.

        With a ``user_id``, only the memories about this user are written, archived ones too, or
        those of one ``run_id`` of this user; ``store`` then has no settings, graph and history.
        The formats that hold no single memories (``sqlite``, ``metadata``, ``settings``) are
        refused.

        The file is private. It replaces an existing one only if ``overwrite``, and only when it is
        complete. Raises ``ValidationError``, ``StorageFull`` and ``StorageUnavailable``.
        """
        owner = _owner_of(user_id, run_id)
        if owner is not None and format in _OF_ALL:
            message = f"{format!r} is about all memories: leave the user out, or use another format"
            raise ValidationError.of("format", message, format)
        dump = self._dump(embeddings=embeddings, as_of=as_of, owner=owner)
        report = self._write_out(path, format, dump, overwrite=overwrite)
        left_out = self._left_out(report.format, of_all=owner is None)
        return report.model_copy(update={"notes": [*report.notes, *left_out]})

    def _export_of(
        self,
        owner: Owner,
        path: str | os.PathLike[str],
        *,
        format: str,  # noqa: A002 - the option's name
        as_of: Time | None,
        overwrite: bool,
    ) -> ExportReport:
        """Write one owner's memories out, in a format that holds memories alone."""
        dump = self._dump(embeddings=False, as_of=as_of, owner=owner)
        return self._write_out(path, format, dump, overwrite=overwrite)

    def _write_out(
        self,
        path: str | os.PathLike[str],
        format: str,  # noqa: A002 - the option's name
        dump: contextlib.AbstractContextManager[Source],
        *,
        overwrite: bool,
    ) -> ExportReport:
        from agent_memory.formats.registry import codec  # noqa: PLC0415 - an edge, and seldom used

        chosen = codec(format)
        place = self.check_destination(path, overwrite=overwrite)
        with translated_errors(place):
            _refuse_target(place, is_folder=chosen.is_folder)
        with dump as source:
            written = chosen.write(place, source)
        return ExportReport(
            path=str(place),
            format=chosen.name,
            memory_count=written.memories,
            notes=list(written.notes),
        )

    def _left_out(self, format: str, *, of_all: bool) -> list[str]:  # noqa: A002 - the option's name
        notes = [] if of_all else [_ONE_USERS]
        if of_all and format not in (*_WHOLE, *_SETTINGS) and self.graph.entities(limit=1):
            notes.append(
                "this format has no place for the graph: use `graph export`, or the format `store`"
            )
        if format not in ("sqlite", *_SETTINGS) and (names := self._store.transfer.foreign_parts()):
            notes.append(f"{added_by_hand(names)} are not exported (the format `sqlite` has them)")
        return notes

    def import_(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002 - the option's name
        on_conflict: OnConflict = "skip",
        skip_bad: bool = False,
        include_erased: bool = False,
        raw: bool = False,
        dry_run: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> ImportReport:
        """Import a file or folder in one transaction, and report the outcome.

        The format is recognised by its content, unless ``format`` names it: one of those of
        ``export``, or that of another program (see the guide ``moving-in``). ``path`` may also be
        the ``postgresql://`` address of LangGraph's PostgresStore.

        ``on_conflict`` decides what happens to a memory whose id exists here with other content:

        - ``skip`` leaves it out.
        - ``replace`` replaces the one that is here.
        - ``newer`` replaces it if the one in the file was changed later.
        - ``keep-both`` stores it under a new id.

        Fields that the file does not have stay as they are.

        From conversations of other programs, what is worth keeping is imported, as ``add`` finds it
        without a model; ``raw`` imports every message as it is.

        What was erased here stays out, even if another entry or an older version contains it; the
        report names it. ``include_erased`` imports it, and it no longer counts as erased.

        If one entry cannot be imported, nothing is. With ``skip_bad``, and always for a folder of
        JSONL files, such entries are left out and reported. ``dry_run`` changes nothing and reports
        what would be done. The file is backed up before memories are replaced; in a database the
        replaced values are in the history alone. ``progress`` is called with the number of entries
        done and the total; with 0 while they are being read. Apparent secrets are treated as the
        setting ``on_secret`` says, and masked ones are listed among the repairs.

        Raises ``ValidationError`` that names the file, the line and the field, and
        ``StorageError``.
        """
        from agent_memory.services.transfer.staging import Staging  # noqa: PLC0415 - seldom used

        if on_conflict not in get_args(OnConflict):
            message = f"must be one of {', '.join(get_args(OnConflict))}"
            raise ValidationError.of("on_conflict", message, on_conflict)
        place, chosen = self._source_of(path, format)
        tell = progress or (lambda _done, _of: None)
        lenient = skip_bad or chosen.skips_bad
        config = self._store.config()
        with Staging(
            config.categories,
            session_id=self.session_id,
            on_secret=config.on_secret,
            scanner=self._secret_scanner,
        ) as intake:
            for done in intake.read(self._entries(chosen, place, raw=raw)):
                tell(done, 0)
            if not lenient and not dry_run:
                intake.raise_refusal(place)
            taker = self if dry_run else self._taker()
            options = ImportOptions(
                on_conflict=on_conflict,
                dry_run=dry_run,
                refuses=not lenient,
                is_foreign=intake.agent_id not in (None, taker.agent_id),
                include_erased=include_erased,
                session_id=taker.session_id,
            )
            backup = None
            if not dry_run and taker._replaces(intake, options):
                backup = taker._store.lifecycle.back_up_before("import")
            try:
                plan = taker._take_in(intake, options, tell)
            except (RejectedContent, LimitReached) as error:
                raise type(error)(f"{place}: {error}", error.errors()) from error
            report = _report(place, chosen.name, intake, plan, dry_run=dry_run, backup=backup)
            secrets = intake.notes()
        if secrets and not dry_run:
            logger().warning("import of %s: %s", place, secrets[0])
        if report.new and not dry_run:
            taker._auto_migration.follow(report.new)
        return report

    def _taker(self) -> TransferVerbs:
        """Return the memory that an import goes into, once all of it was read."""
        return self

    def move_to(
        self,
        root: str | os.PathLike[str],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> MoveReport:
        """Copy everything to the same agent under another root, and return how many rows it has.

        ``root`` is as for ``AgentMemory``. Ids, history, operations, graph, vectors, settings,
        rejections and tombstones are copied; backups and the event log are not. In the end all rows
        are compared, one by one. Others may write until then; during the comparison they wait, or
        are told that the memory is in use. The original stays as it is, and should not be used
        afterwards.

        Nothing is visible at the new place until everything has arrived. If the move is
        interrupted, call it again: it continues where it stopped. ``progress`` is called with the
        number of rows done and the total; the comparison counts them a second time. Raises
        ``ConfigurationError`` if there are memories at the new place already, ``MigrationError`` if
        a row there is not what was written, and ``StorageError``.
        """
        address = paths.agent_address(self.agent_id, root)
        if address == self._store.address:
            raise ValidationError.of("root", "is where the memory already is", str(root))
        return self._store.transfer.move(address, progress=progress or (lambda _done, _of: None))

    def _source_of(
        self,
        path: str | os.PathLike[str],
        format: str | None,  # noqa: A002 - the option's name
    ) -> tuple[Path | ServerAddress, Reader]:
        from agent_memory.formats import registry  # noqa: PLC0415 - an edge, and seldom used

        if isinstance(path, str) and is_server(path):
            if format not in (None, "langgraph"):
                message = "only LangGraph's PostgresStore can be read from a server: leave it out"
                raise ValidationError.of("format", message, format)
            return server_address(path), registry.reader("langgraph")
        place = Path(check_existing_path(path))
        if place.resolve() in files_of(self._address):
            raise ValidationError.of("path", f"{place} is the memory itself", str(place))
        if format is None and file_storage().is_open_here(place):
            format = "sqlite"  # noqa: A001 - looking into it would drop the locks on it
        return place, registry.recognise(place) if format is None else registry.reader(format)

    def _entries(
        self, chosen: Reader, place: Path | ServerAddress, *, raw: bool
    ) -> Iterator[Entry | PassedOver]:
        """Return what a file tells; of conversations what lasts, unless they are taken ``raw``."""
        from agent_memory.formats.peers.conversations import Conversations  # noqa: PLC0415

        if not isinstance(chosen, Conversations):
            if raw:
                message = f"is for conversations, and {place} has the format {chosen.name}"
                raise ValidationError.of("raw", f"{message}: leave it out", raw)
            if isinstance(place, ServerAddress):
                from agent_memory.api.peer_databases import entries_on_server  # noqa: PLC0415

                return entries_on_server(place)
            return chosen.read(place)
        if isinstance(place, ServerAddress):
            raise TypeError("conversations cannot be read from a server")
        if raw:
            return chosen.read(place)
        from agent_memory.api.conversation_import import facts_of  # noqa: PLC0415 - seldom used

        return facts_of(chosen, place, self._open_learning)

    def _open_learning(self, path: Path) -> LearningMemory:
        """Make a memory that conversations are added to; what it keeps is screened on import."""
        opened = type(self).open(
            path, agent_id=self.agent_id, embedder=None, synchronous="NORMAL", clock=self._clock
        )
        memory = cast("LearningMemory", opened)
        memory.configure(on_secret=OnSecret.KEEP.value, categories=self._store.config().categories)
        return memory

    def _take_in(
        self,
        intake: Staging,
        options: ImportOptions,
        tell: Callable[[int, int], None] = lambda _done, _of: None,
    ) -> Plan:
        return self._store.transfer.import_entries(
            intake.entries(), options, progress=lambda done: tell(done, intake.count)
        )

    def _replaces(self, intake: Staging, options: ImportOptions) -> bool:
        if options.on_conflict not in ("replace", "newer") or not self._store.count_all():
            return False
        plan = self._take_in(intake, options._replace(dry_run=True, refuses=False))
        return plan.changed > 0 or bool(plan.settings)


def _report(
    place: Path | ServerAddress,
    form: str,
    intake: Staging,
    plan: Plan,
    *,
    dry_run: bool,
    backup: Path | None,
) -> ImportReport:
    """Say what became of the entries, as they were read and as they were taken in.

    A folder of memories is private (E); a file that was exported may lie anywhere.
    """
    refusals, erasures = (
        [ImportNote(place=at, memory_id=each, message=reason) for at, each, reason in left_out]
        for left_out in (plan.refusals, plan.erasures)
    )
    # The import is done: Path.is_dir would raise the EIO of a disk that fails now.
    is_folder = isinstance(place, Path) and os.path.isdir(place)  # noqa: PTH112
    exposed = exposures(place) if isinstance(place, Path) and is_folder else ()
    return ImportReport(
        path=str(place),
        format=form,
        agent_id=intake.agent_id,
        dry_run=dry_run,
        new=plan.new,
        changed=plan.changed,
        same=plan.same + intake.repeated,
        kept=plan.kept,
        refused=intake.refused + len(refusals),
        repaired=intake.repaired,
        erased=len(erasures),
        refusals=[*intake.refusals, *refusals][:_MOST_LISTED],
        repairs=intake.repairs,
        erasures=erasures[:_MOST_LISTED],
        notes=[
            *intake.left_out(),
            *plan.notes,
            *intake.notes(),
            *exposed,
        ],
        settings=plan.settings,
        backup=None if backup is None else str(backup),
    )


def _owner_of(user_id: str | None, run_id: str | None) -> Owner | None:
    if user_id is None and run_id is None:
        return None
    if user_id is None:
        raise ValidationError.of("run_id", "belongs to a user: give the user_id too", run_id)
    from agent_memory.models.session import SessionScope  # noqa: PLC0415 - seldom used

    return SessionScope.of({"user_id": user_id, "run_id": run_id}).owner


def _refuse_target(place: Path, *, is_folder: bool) -> None:
    if not place.parent.is_dir():
        message = f"the directory of {place} does not exist"
        raise ValidationError.of("path", message, str(place))
    if not is_folder and place.is_dir() and not place.is_symlink():
        raise ValidationError.of("path", f"{place} is a directory: name a file", str(place))
