"""Opening and closing a memory: the options of ``AgentMemory``, and the parts it is made of."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, TypedDict, TypeVar, Unpack

from agent_memory.api.arguments import (
    Clock,
    Time,
    choose_embedder,
    parse_as_of,
)
from agent_memory.api.plain_arguments import WithCheckedFlags, check_flags
from agent_memory.embeddings.registry import EmbedderSpec
from agent_memory.embeddings.usage import EmbeddingUsage
from agent_memory.errors import AgentNotFound, ConfigurationError, StorageClosed, ValidationError
from agent_memory.models.config import MemoryContextConfig, MemoryToolConfig
from agent_memory.models.fields import choose_session_name
from agent_memory.models.protocols import SecretScanner
from agent_memory.models.record import validate_model
from agent_memory.models.times import now_utc, to_utc
from agent_memory.runtime import paths
from agent_memory.runtime.addresses import Address
from agent_memory.runtime.files import is_there, tighten_folder
from agent_memory.runtime.lazy_parts import lazy_property
from agent_memory.services.embedding.auto_migration import AutoMigration
from agent_memory.services.embedding.choice import settings_of
from agent_memory.services.embedding.service import EmbeddingService
from agent_memory.services.events import Events, Listener
from agent_memory.services.store import Store

if TYPE_CHECKING:
    from agent_memory.api.graph import MemoryGraph
    from agent_memory.models.agent import AgentConfig

Function = TypeVar("Function", bound=Callable[..., Any])
_Item = TypeVar("_Item")


class MemoryOptions(TypedDict, total=False):
    """The options of ``AgentMemory``, ``open`` and ``MemoryStorage``, beside the place of the file.

    ``AgentMemory`` explains each.
    """

    session_id: str | None
    embedder: EmbedderSpec
    config: MemoryToolConfig | Mapping[str, Any] | None
    context_config: MemoryContextConfig | Mapping[str, Any] | None
    clock: Clock
    create: bool
    read_only: bool
    synchronous: str
    secret_scanner: SecretScanner | None
    on_event: Listener | None
    event_text: bool


_DEFAULTS: Final[MemoryOptions] = {
    "session_id": None,
    "embedder": "auto",
    "config": None,
    "context_config": None,
    "clock": now_utc,
    "create": True,
    "read_only": False,
    "synchronous": "FULL",
    "secret_scanner": None,
    "on_event": None,
    "event_text": False,
}


def with_options_in_signature(function: Function) -> Function:
    """Show the options by name in ``help`` and editors where a function takes ``**options``."""
    shown = inspect.signature(function)
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=MemoryOptions.__annotations__[name].__forward_arg__,
        )
        for name, default in _DEFAULTS.items()
    ]
    own = [parameter for parameter in shown.parameters.values() if parameter.name != "options"]
    vars(function)["__signature__"] = shown.replace(parameters=[*own, *options])
    return function


class OpenMemory(WithCheckedFlags):
    """An open file of memories, with its settings; ``AgentMemory`` adds the verbs."""

    _check_sharing: Callable[[AgentConfig], None] | None = None
    """Of another agent's memory: raises ``PermissionDenied`` unless these settings share it."""

    @with_options_in_signature
    def __init__(
        self,
        agent_id: str,
        *,
        root: paths.Root | None = None,
        **options: Unpack[MemoryOptions],
    ) -> None:
        config = validate_model(MemoryToolConfig, options.get("config"))
        if root is None and "storage_root" in config.model_fields_set:
            root = config.storage_root
        address = paths.agent_address(agent_id, root)
        self._start(address, agent_id, options)
        if isinstance(address, Path):
            tighten_folder(address.parent)

    @classmethod
    @with_options_in_signature
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        agent_id: str | None = None,
        **options: Unpack[MemoryOptions],
    ) -> Self:
        """Open a memory file at any path; it is created if it does not exist.

        A file knows whose it is. ``agent_id`` names the agent of a new file (default: ``agent``),
        and must match that of an existing one.
        """
        memory = cls.__new__(cls)
        memory._start(paths.resolve_file(path), agent_id, options)
        return memory

    def _open_beside(self, agent_id: str, *, root: paths.Root, read_only: bool) -> Self:
        """Open the memory of another agent with the options of this one; nobody listens to it."""
        memory = self.__class__.__new__(self.__class__)
        options: MemoryOptions = {**self._options, "create": False, "read_only": read_only}
        OpenMemory.__init__(memory, agent_id, root=root, **options)
        return memory

    def _start(self, address: Address, agent_id: str | None, options: MemoryOptions) -> None:
        unknown = sorted(options.keys() - _DEFAULTS.keys())
        if unknown:
            raise TypeError(f"{type(self).__name__} has no option {', '.join(unknown)}")
        chosen: MemoryOptions = {**_DEFAULTS, **options}
        _refuse_unfit(chosen)
        makes_none = chosen["read_only"] or not chosen["create"]
        if makes_none and isinstance(address, Path) and not is_there(address):
            advice = (
                paths.advice_on_missing(address) or "`agent-memory agents` lists the existing ones"
            )
            raise AgentNotFound(f"{address} does not exist. {advice}")
        config = validate_model(MemoryToolConfig, chosen["config"])
        self._config = config
        self._clock = chosen["clock"]
        self._secret_scanner = chosen["secret_scanner"]
        self._context_config = validate_model(MemoryContextConfig, chosen["context_config"])
        self.session_id = choose_session_name(chosen["session_id"])
        self._options: MemoryOptions = {
            **chosen,
            "config": config,
            "session_id": self.session_id,
            "on_event": None,
        }
        spec = choose_embedder(chosen["embedder"])
        self._opened_store = Store(
            address,
            agent_id=agent_id,
            clock=self._now,
            create=chosen["create"],
            read_only=chosen["read_only"],
            synchronous=chosen["synchronous"],
            promotion_threshold=self._context_config.promotion_access_threshold,
        )
        store = self._opened_store
        self.agent_id = store.agent_id
        self._address = address
        self._is_closed = False
        self._embedding = EmbeddingService(
            store.vectors,
            spec,
            settings=lambda: settings_of(config, store.readable_config()),
            timeout_seconds=config.embedding_timeout_seconds,
            cache_ttl_seconds=config.cache_ttl_seconds if config.enable_caching else 0,
        )
        self._events = Events(
            store.event_log,
            agent_id=self.agent_id,
            session_id=self.session_id,
            clock=self._now,
            setting=lambda: store.readable_config().event_log,
            listener=chosen["on_event"],
            with_text=chosen["event_text"],
            writable=not chosen["read_only"],
        )
        store.on_promoted(self._events.promoted)
        self._auto_migration = AutoMigration(store, self._embedding, config, self._events)

    @property
    def _store(self) -> Store:
        """The store: every verb takes it from here, and is refused what is shared no more."""
        self._refuse_unshared()
        return self._opened_store

    def _refuse_unshared(self) -> None:
        """Raise ``PermissionDenied`` for another agent's memory that is shared no more."""
        if self._check_sharing is not None:
            self._check_sharing(self._opened_store.config())

    def _while_shared(self, coming: Iterable[_Item | None]) -> Iterator[_Item]:
        """Yield the items while the memory is open and shared, without the ``None`` in between."""
        for item in coming:
            self._refuse_unshared()
            if item is not None:
                yield item
            elif self._is_closed:  # no look at the file, which may be away for a moment
                raise StorageClosed(f"{self._address} is closed: open the memory again")

    @lazy_property
    def graph(self) -> MemoryGraph:
        """The entities that the memories mention, how they are related, and when."""
        from agent_memory.api.graph import MemoryGraph  # noqa: PLC0415 - made when it is first used

        return MemoryGraph(lambda: self._store.graph, self.check_destination)

    def check_destination(
        self, path: str | os.PathLike[str], *, overwrite: bool = False, field: str = "path"
    ) -> Path:
        """Return the absolute path of a place where a file may be written, as ``export`` does.

        Raises ``ValidationError`` naming the ``field`` if it is the file of a memory, this one or
        another, or, without ``overwrite``, if it exists.
        """
        check_flags(overwrite=overwrite)
        from agent_memory.services.destinations import destination  # noqa: PLC0415 - seldom used

        return destination(path, self._address, self.agent_id, overwrite=overwrite, field=field)

    @property
    def path(self) -> Path:
        """The file of the memories. Raises ``ConfigurationError`` if they are on a server."""
        if not isinstance(self._address, Path):
            raise ConfigurationError(f"{self._address} is in a database, not a file")
        return self._address

    @property
    def location(self) -> str:
        """Where the memories are: the path of the file, or the address without its password."""
        return str(self._address)

    @property
    def id_prefix(self) -> str:
        """How ids given to ``store`` must begin: no restriction here, a prefix in each session."""
        return ""

    @property
    def embedding_usage(self) -> EmbeddingUsage:
        """What was embedded through this object: requests, texts, tokens, dollars."""
        return self._embedding.usage

    def close(self) -> None:
        """Close the file. Everything that ``store`` returned from is safe even without this."""
        self._is_closed = True
        self._auto_migration.stop()
        self._opened_store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _as_of(self, moment: Time) -> Iterator[Self]:
        """Give the body a memory that is as this one was at a moment; it goes with the body."""
        when = parse_as_of(moment)
        options: MemoryOptions = {**self._options, "create": False, "read_only": False}
        with (
            self._store.transfer.copy_as_of(when) as copy,
            self.open(copy, agent_id=self.agent_id, **options) as past,
        ):
            yield past

    def __repr__(self) -> str:
        return f"AgentMemory({self.agent_id!r}, path={self.location!r})"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied, as frameworks do it that send work to other processes."""
        raise TypeError(
            f"{self!r} cannot be pickled or copied: open the memory again where it is used"
        )

    def _now(self) -> datetime:
        now = self._clock()
        if not isinstance(now, datetime):
            raise ConfigurationError(f"the clock must return a datetime, not {now!r:.80}")
        if now.tzinfo is None:  # `datetime.now` would be taken for UTC, hours off
            raise ConfigurationError("the clock must return an aware time, as datetime.now(UTC) is")
        try:
            return to_utc(now)
        except ValueError as error:
            raise ConfigurationError(f"the clock returned an unusable time: {error}") from error


def _refuse_unfit(options: MemoryOptions) -> None:
    """Raise ``ValidationError`` for an option that would fail later, in a verb or in SQLite."""
    check_flags(
        create=options["create"], read_only=options["read_only"], event_text=options["event_text"]
    )
    if not callable(clock := options["clock"]):
        raise ValidationError.of("clock", "must be a function that returns the time", clock)
    scanner, listener = options["secret_scanner"], options["on_event"]
    has_find = not isinstance(scanner, str) and callable(getattr(scanner, "find", None))
    if scanner is not None and not has_find:
        raise ValidationError.of("secret_scanner", "must be an object with a find(text)", scanner)
    if listener is not None and not callable(listener):
        raise ValidationError.of("on_event", "must be a function of an event", listener)
