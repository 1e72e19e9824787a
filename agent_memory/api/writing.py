"""The verbs that store and change memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import BaseModel

from agent_memory.api.arguments import (
    Time,
    build_memories,
    check_duplicate_policy,
    check_is_id,
    check_secret_policy,
    validate_fields,
)
from agent_memory.api.opening import OpenMemory
from agent_memory.models.agent import AgentConfig
from agent_memory.models.duplicate import Duplicate, DuplicateGroup, DuplicatePolicy
from agent_memory.models.enums import OnSecret
from agent_memory.models.fields import new_memory_id
from agent_memory.models.memory import Memory, MemoryChanges, MemoryInput
from agent_memory.models.memory_fields import SharedFields
from agent_memory.models.safety import FoundSecrets, SecretPolicy
from agent_memory.services.writing.insert import InsertResult

if TYPE_CHECKING:
    from agent_memory.api.options import Changes


class WritingVerbs(OpenMemory):
    """Storing and changing memories. ``AgentMemory`` has these verbs."""

    def store(
        self,
        content: str,
        *,
        category: str | None = None,
        tags: Sequence[str] | None = None,
        kind: str | None = None,
        importance: str | None = None,
        session_id: str | None = None,
        user_id: str | None = None,
        run_id: str | None = None,
        memory_type: str | None = None,
        timestamp: Time | None = None,
        task_metadata: Mapping[str, Any] | BaseModel | None = None,
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,  # noqa: A002 - the field's name
        on_duplicate: DuplicatePolicy | None = None,
        on_secret: SecretPolicy | None = None,
    ) -> str:
        """Store a memory and return its id. When this returns, it is on the disk.

        ``content`` has 1 to 10,000 characters. The defaults are ``category`` ``note``, ``kind``
        ``learning``, ``importance`` ``medium``, and now as the ``timestamp``. ``metadata`` is any
        JSON data, up to 20 levels deep; only ``MemoryRecord`` and ``add`` have narrower limits (5
        levels, keys of 100 characters, texts of 1,000, no reserved keys). With an ``id`` the call
        can be repeated: storing the same content again changes nothing and returns the id.

        ``on_duplicate`` decides what happens if a memory about the same user (and of the same run)
        says the same in the same words (``Duplicate``):

        - ``keep`` stores both.
        - ``merge`` adds the new tags and metadata to the existing memory, raises its importance to
          the higher of the two, and returns its id. What it cannot take over (another category,
          time or id, or another value for the same metadata key) is listed in
          ``Duplicate.left_out`` and in the log.
        - ``refuse`` raises ``DuplicateMemory``.
        - A function is called with it, and with similar memories too, and returns one of these
          words (which has an effect for duplicates only) or ``None``. It must not use this memory,
          and must return within moments: all writers wait, and fail after five seconds. What it
          raises is passed on, with nothing stored.

        By default the file's setting decides; a memory with an ``id`` or ``timestamp`` is then
        never merged. Without a setting everything is kept except echoes: what a search or
        ``context`` returned within the last hour is merged when it is stored again. An event that
        really happens again within that hour, in the same words, is taken for an echo: give it a
        ``timestamp``, or use ``on_duplicate="keep"``. A memory is not an echo if it has an ``id``
        or ``timestamp``, says more than the existing one (another category, importance or metadata
        value), or takes back a newer memory that says something similar.

        ``on_secret`` decides what happens if the content, tags, metadata or a task's details seem
        to contain a key, token or password. By default the file's setting decides, which is
        ``warn``:

        - ``warn`` stores it and logs a warning.
        - ``mask`` replaces each secret by ``[masked: …]`` before anything is written.
        - ``refuse`` raises ``SecretFound``.
        - ``keep`` does not look.
        - A function is called instead of logging (``FoundSecrets``) and returns one of the words or
          ``None``.

        Raises ``ValidationError`` for an invalid value, for an id that exists with other content,
        or for content that was erased under this id (unless the ``timestamp`` is later than that),
        and ``StorageError`` if the file cannot be written.
        """
        values = {
            "content": content,
            "category": category,
            "tags": tags,
            "kind": kind,
            "importance": importance,
            "session_id": session_id,
            "user_id": user_id,
            "run_id": run_id,
            "memory_type": memory_type,
            "timestamp": timestamp,
            "task_metadata": task_metadata,
            "metadata": metadata,
            "id": id,
        }
        fields = {name: value for name, value in values.items() if value is not None}
        settings = self._store.config()
        memory, secrets = self._apply_secret_policy(
            self._build_memory({**fields, "content": content}, settings),
            check_secret_policy(on_secret),
            settings,
        )
        (memory_id,) = self._insert(
            [memory],
            [] if secrets is None else [secrets],
            on_secret,
            settings,
            generated_ids=frozenset({memory.id}) if id is None else frozenset(),
            fields_set=[frozenset(fields)],
            is_list=False,
            on_duplicate=check_duplicate_policy(on_duplicate),
        )
        return memory_id

    def store_many(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        on_duplicate: DuplicatePolicy | None = None,
        on_secret: SecretPolicy | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[str]:
        """Store many memories in one transaction, all or none, and return their ids in order.

        Each item is a mapping with the fields of ``store``. Raises ``ValidationError`` that lists
        the invalid items, or refused duplicates, by their position (from 0); then nothing is
        stored. ``on_duplicate`` works as in ``store``, between the items as well, but a function is
        not called for similar memories. ``on_secret`` works as in ``store``. ``progress`` is called
        now and then with the number done and the total; like such a function, while others wait.
        """
        policy, settings = check_secret_policy(on_secret), self._store.config()
        all_secrets: list[FoundSecrets] = []

        def build(item: Mapping[str, Any], place: int) -> Memory:
            memory = self._build_memory(item, settings, at=(place,))
            memory, secrets = self._apply_secret_policy(memory, policy, settings, index=place)
            all_secrets.extend(() if secrets is None else (secrets,))
            return memory

        memories, generated_ids, fields_set = build_memories(items, build)
        return self._insert(
            memories,
            all_secrets,
            policy,
            settings,
            generated_ids=generated_ids,
            fields_set=fields_set,
            on_duplicate=check_duplicate_policy(on_duplicate),
            progress=progress,
        )

    def _insert(
        self,
        memories: Sequence[Memory],
        secrets: Sequence[FoundSecrets],
        policy: SecretPolicy | None,
        settings: AgentConfig,
        **options: Any,  # noqa: ANN401 - those of Store.add
    ) -> list[str]:
        """Store memories, log the secrets in them, publish the event, and return their ids."""
        spent = self.embedding_usage.cost_usd
        added = self._store.add(memories, settings=settings, **options)
        if secrets:
            named = [
                each.model_copy(update={"memory_id": added.ids[each.index or 0]})
                for each in secrets
            ]
            log_secrets(named, policy)
        self._auto_migration.follow(len(memories), settings)
        self._publish_stored(memories, added, spent, settings)
        return added.ids

    def validate(self, item: Mapping[str, Any], *, on_secret: str | None = None) -> None:
        """Raise what ``store`` would raise for an item by itself, without storing it.

        Its fields, its secrets and its ``id`` are checked. What depends on the memories at the time
        of storing is not: ``store`` may still raise ``LimitReached``, ``RejectedContent`` or
        ``DuplicateMemory``.
        """
        policy, settings = check_secret_policy(on_secret), self._store.config()
        memory, _ = self._apply_secret_policy(self._build_memory(item, settings), policy, settings)
        if "id" in item:
            self._store.raise_if_conflicting(memory)

    def duplicates(
        self, content: str, *, user_id: str | None = None, run_id: str | None = None
    ) -> list[Duplicate]:
        """Return the memories that say the same as a text, best grade first, without any change.

        Only memories about the same user and of the same run are considered, and none that are
        archived.
        """
        settings = self._store.config()
        fields = {"content": content, "user_id": user_id, "run_id": run_id}
        memory = self._build_memory(fields, settings)
        if OnSecret(settings.on_secret) is OnSecret.MASK:  # so it would have been stored
            memory, _ = self._apply_secret_policy(memory, None, settings)
        return self._store.duplicates(memory.content, user_id=memory.user_id, run_id=memory.run_id)

    def duplicate_groups(self) -> Iterator[DuplicateGroup]:
        """Yield the groups of memories that say the same, oldest first."""
        return self._while_shared(self._store.duplicate_groups())

    def update(
        self,
        memory_id: str,
        *,
        if_version: int | None = None,
        on_secret: SecretPolicy | None = None,
        **changes: Unpack[Changes],
    ) -> Memory:
        """Change some fields of a memory, and return it as it is now.

        The old values stay in its history. The fields are those of ``store`` except ``id`` and
        ``session_id``; lists and mappings replace the old ones, and ``None`` takes a user or a run
        away, each alone: the run of a user who was taken away stays. With ``if_version``, the
        memory must still have that version; otherwise ``ValidationError`` is raised and nothing is
        changed. ``on_secret`` works as in ``store``. Raises ``MemoryNotFound``.
        """
        check_is_id(memory_id)
        policy, settings = check_secret_policy(on_secret), self._store.config()
        model = validate_fields(MemoryChanges, changes, categories=settings.categories)
        fields = {name: getattr(model, name) for name in model.model_fields_set}
        if task := fields.get("task_metadata"):
            fields["task_metadata"] = task.timed(self._now())
        masked, secrets = self._masked_fields(fields, memory_id, policy, settings)
        memory = self._store.update(
            memory_id,
            {**fields, **masked},
            session_id=self.session_id,
            version=if_version,
            settings=settings,
        )
        if secrets is not None:
            log_secrets([secrets], policy)
        self._auto_migration.follow(1, settings)
        return memory

    def delete(self, memory_id: str) -> Memory:
        """Delete a memory and return it as it was; it stays in the history.

        Raises ``MemoryNotFound``.
        """
        check_is_id(memory_id)
        return self._store.delete(memory_id, session_id=self.session_id)

    def _publish_stored(
        self,
        memories: Sequence[Memory],
        added: InsertResult,
        spent: float,
        settings: AgentConfig | None = None,
    ) -> None:
        """Publish which memories are new, and what their vectors cost, if anybody listens."""
        if not added.new:
            return
        if self._events.has_listeners(None if settings is None else settings.event_log):
            cost = self.embedding_usage.cost_usd - spent
            self._events.stored(memories, added, backend=self._store.backend(), cost_usd=cost)

    def _apply_secret_policy(
        self,
        memory: Memory,
        policy: SecretPolicy | None,
        settings: AgentConfig,
        *,
        index: int | None = None,
    ) -> tuple[Memory, FoundSecrets | None]:
        """Return a memory as it may be stored, and what looks like a secret in it."""
        masked, secrets = self._masked_fields(
            vars(memory), memory.id, policy, settings, index=index
        )
        return (memory.model_copy(update=masked) if masked else memory), secrets

    def _masked_fields(
        self,
        fields: Mapping[str, Any],
        memory_id: str,
        policy: SecretPolicy | None,
        settings: AgentConfig,
        *,
        index: int | None = None,
    ) -> tuple[dict[str, Any], FoundSecrets | None]:
        """Return the fields that the policy changes, and what looks like a secret in all."""
        from agent_memory.services.policies.secrets import apply_secret_policy  # noqa: PLC0415

        return apply_secret_policy(
            fields,
            memory_id=memory_id,
            setting=settings.on_secret,
            policy=policy,
            scanner=self._secret_scanner,
            index=index,
        )

    def _build_memory(
        self, item: Mapping[str, Any], settings: AgentConfig, *, at: Sequence[int] = ()
    ) -> Memory:
        checked = validate_fields(MemoryInput, item, categories=settings.categories, at=at)
        now = self._now()
        fields = vars(checked)
        # A copy takes half the time of model_construct, which asks each field for its default.
        return Memory.defaults().model_copy(
            update={
                **{name: fields[name] for name in SharedFields.model_fields},
                "id": checked.id or new_memory_id(),
                "task_metadata": checked.task_metadata and checked.task_metadata.timed(now),
                "agent_id": self.agent_id,
                "created_by_session": checked.session_id or self.session_id,
                "timestamp": checked.timestamp or now,
                "updated_at": now,
            }
        )


def log_secrets(secrets: Sequence[FoundSecrets], policy: SecretPolicy | None) -> None:
    """Log apparent secrets, unless the caller's own function was told of them."""
    if not callable(policy):
        from agent_memory.services.policies.secrets import log  # noqa: PLC0415 - imported when it was found

        log(secrets)
