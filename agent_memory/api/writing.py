"""The verbs that store and change memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from agent_memory.api.arguments import (
    Time,
    build_memories,
    check_duplicate_policy,
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


class WritingVerbs(OpenMemory):
    """Storing and changing. ``AgentMemory`` has these verbs."""

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

        ``content`` has 1 to 10,000 characters. ``category`` is ``note`` unless given, ``kind``
        ``learning``, ``importance`` ``medium``, ``timestamp`` now. With an ``id``, storing the
        same content again changes nothing and returns the id.

        ``on_duplicate`` says what is done when a memory about the same user, of the same run, says
        the same in the same words (``Duplicate``): ``keep`` stores both, ``merge`` gives the one
        that is there the new tags and metadata, and the higher importance, and returns its id,
        ``refuse`` raises ``DuplicateMemory``. What ``merge`` does not take over (another category,
        time or id, another value of the same metadata key) is named in ``Duplicate.left_out`` and
        in the log. A function is told of it, and of similar memories, and returns one of the three
        words (which counts for duplicates alone) or ``None``; it must not use this memory, and what
        it raises comes out as it is, with nothing stored.

        Unless it is given, the setting in the file decides; with an ``id`` or a ``timestamp`` that
        never merges. Without a setting all are kept but echoes: what a search or ``context`` gave
        out within the hour is merged. So an event that happens again within the hour after it was
        recalled, and is reported in the same words, is taken for an echo: give its ``timestamp``,
        or ``on_duplicate="keep"``. No echo is what has an ``id`` or a ``timestamp``, says more than
        the memory that is there (another category, importance or value of metadata), or takes back
        a newer memory that says something similar.

        ``on_secret`` says what is done when content, tags, metadata or a task's details look like
        they hold a key, a token or a password: ``warn`` stores them and logs it, ``mask`` replaces
        each by ``[masked: …]`` before anything is written, ``refuse`` raises ``SecretFound``,
        ``keep`` does not look. A function is told instead of the log (``FoundSecrets``) and returns
        one of the words or ``None``. Unless it is given, the setting in the file decides: ``warn``.

        ``metadata`` is any JSON data, 20 levels deep. Narrower limits (5 levels, keys
        of 100 characters, texts of 1,000, no reserved keys) hold for ``MemoryRecord`` and in
        ``add``: integrations keep whole values of theirs in the metadata of a memory.

        Raises ``ValidationError`` for a value that cannot be taken, an id that has another content,
        or one that was erased and said just this (unless the ``timestamp`` says that it was said
        since); ``StorageError`` when the file cannot be written.
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
        spent = self.embedding_usage.cost_usd
        added = self._store.add(
            [memory],
            settings=settings,
            generated_ids=frozenset({memory.id}) if id is None else frozenset(),
            fields_set=[frozenset(fields)],
            is_list=False,
            on_duplicate=check_duplicate_policy(on_duplicate),
        )
        (memory_id,) = added.ids
        if secrets is not None:
            log_secrets([secrets.model_copy(update={"memory_id": memory_id})], on_secret)
        self._auto_migration.follow(1, settings)
        self._publish_stored([memory], added, spent, settings)
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

        Each item is a mapping with the fields of ``store``. Raises ``ValidationError`` that says
        which items are wrong, or duplicates that are refused, by their place (from 0); then nothing
        is stored. ``on_duplicate`` is as in ``store``, among the items as well, but of similar ones
        it is not told; ``on_secret`` is as in ``store`` too. ``progress`` is called now and then
        with how many are done, of how many.
        """
        policy, settings = check_secret_policy(on_secret), self._store.config()
        all_secrets: list[FoundSecrets] = []

        def build(item: Mapping[str, Any], place: int) -> Memory:
            memory = self._build_memory(item, settings, at=(place,))
            memory, secrets = self._apply_secret_policy(memory, policy, settings, index=place)
            all_secrets.extend(() if secrets is None else (secrets,))
            return memory

        memories, generated_ids, fields_set = build_memories(items, build)
        spent = self.embedding_usage.cost_usd
        added = self._store.add(
            memories,
            settings=settings,
            generated_ids=generated_ids,
            fields_set=fields_set,
            on_duplicate=check_duplicate_policy(on_duplicate),
            progress=progress,
        )
        ids = added.ids
        if all_secrets:
            stored = [
                secrets.model_copy(update={"memory_id": ids[secrets.index or 0]})
                for secrets in all_secrets
            ]
            log_secrets(stored, policy)
        self._auto_migration.follow(len(ids), settings)
        self._publish_stored(memories, added, spent, settings)
        return ids

    def validate(self, item: Mapping[str, Any], *, on_secret: str | None = None) -> None:
        """Raise what ``store`` would raise for one item, without storing it."""
        policy, settings = check_secret_policy(on_secret), self._store.config()
        memory, _ = self._apply_secret_policy(self._build_memory(item, settings), policy, settings)
        if "id" in item:
            self._store.raise_if_conflicting(memory)

    def duplicates(
        self, content: str, *, user_id: str | None = None, run_id: str | None = None
    ) -> list[Duplicate]:
        """Return the memories that say what a text says, best grade first, and change nothing.

        They are those about the same user, of the same run, that are not archived.
        """
        settings = self._store.config()
        fields = {"content": content, "user_id": user_id, "run_id": run_id}
        memory = self._build_memory(fields, settings)
        if OnSecret(settings.on_secret) is OnSecret.MASK:  # so it would have been stored
            memory, _ = self._apply_secret_policy(memory, None, settings)
        return self._store.duplicates(memory.content, user_id=memory.user_id, run_id=memory.run_id)

    def duplicate_groups(self) -> Iterator[DuplicateGroup]:
        """Yield the groups of memories that say the same, the oldest first."""
        return self._while_shared(self._store.duplicate_groups())

    def update(
        self,
        memory_id: str,
        *,
        if_version: int | None = None,
        on_secret: SecretPolicy | None = None,
        **changes: Any,  # noqa: ANN401 - MemoryChanges' fields
    ) -> Memory:
        """Change some fields of a memory and return it as it is now.

        The old values stay in its history. The fields are those of ``store`` but ``id`` and
        ``session_id``; lists and mappings replace the old ones. With ``if_version`` the memory
        must still have that version, or ``ValidationError`` is raised and nothing changed.
        ``on_secret`` is as in ``store``. Raises ``MemoryNotFound``.
        """
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
    """Log what looks like secrets, unless the caller's own function was told of it."""
    if not callable(policy):
        from agent_memory.services.policies.secrets import log  # noqa: PLC0415 - imported when it was found

        log(secrets)
