"""The verbs that store and change memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from agent_memory.api import arguments as inputs
from agent_memory.api.arguments import Time
from agent_memory.api.opening import OpenMemory
from agent_memory.models.duplicate import Duplicate, DuplicateGroup, DuplicatePolicy
from agent_memory.models.enums import OnSecret
from agent_memory.models.memory import Memory, MemoryChanges, MemoryInput, new_memory_id
from agent_memory.models.safety import FoundSecrets, SecretPolicy
from agent_memory.services.store import Added


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

        Raises ``ValidationError`` for a value that cannot be taken, or an id that has another
        content; ``StorageError`` when the file cannot be written.
        """
        given = {
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
        fields = {name: value for name, value in given.items() if value is not None}
        memory, found = self._screened(
            self._memory({**fields, "content": content}),
            inputs.secret_policy(on_secret),
            self._on_secret(),
        )
        spent = self.embedding_usage.cost_usd
        added = self._store.add(
            [memory],
            made_up=frozenset({memory.id}) if id is None else frozenset(),
            given=[frozenset(fields)],
            is_list=False,
            on_duplicate=inputs.duplicate_policy(on_duplicate),
        )
        (memory_id,) = added.ids
        if found is not None:
            tell_secrets([found.model_copy(update={"memory_id": memory_id})], on_secret)
        self._mover.follow()
        self._tell_stored([memory], added, spent)
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
        said, setting = inputs.secret_policy(on_secret), self._on_secret()
        noticed: list[FoundSecrets] = []

        def made(item: Mapping[str, Any], place: int) -> Memory:
            memory = self._memory(item, at=(place,))
            memory, found = self._screened(memory, said, setting, index=place)
            noticed.extend(() if found is None else (found,))
            return memory

        memories, made_up, names = inputs.made_memories(items, made)
        spent = self.embedding_usage.cost_usd
        added = self._store.add(
            memories,
            made_up=made_up,
            given=names,
            on_duplicate=inputs.duplicate_policy(on_duplicate),
            progress=progress,
        )
        ids = added.ids
        if noticed:
            stored = [it.model_copy(update={"memory_id": ids[it.index or 0]}) for it in noticed]
            tell_secrets(stored, said)
        self._mover.follow(len(ids))
        self._tell_stored(memories, added, spent)
        return ids

    def validate(self, item: Mapping[str, Any], *, on_secret: str | None = None) -> None:
        """Raise what ``store`` would raise for one item, without storing it."""
        said = inputs.secret_policy(on_secret)
        memory, _ = self._screened(self._memory(item), said, self._on_secret())
        if "id" in item:
            self._store.holds(memory)

    def duplicates(
        self, content: str, *, user_id: str | None = None, run_id: str | None = None
    ) -> list[Duplicate]:
        """Return the memories that say what a text says, best grade first, and change nothing.

        They are those about the same user, of the same run, that are not archived.
        """
        asked = self._memory({"content": content, "user_id": user_id, "run_id": run_id})
        if (setting := self._on_secret()) is OnSecret.MASK:  # so it would have been stored
            asked, _ = self._screened(asked, None, setting)
        return self._store.duplicates(asked.content, user_id=asked.user_id, run_id=asked.run_id)

    def duplicate_groups(self) -> Iterator[DuplicateGroup]:
        """Yield the groups of memories that say the same, the oldest first."""
        return self._store.duplicate_groups()

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
        said = inputs.secret_policy(on_secret)
        given = inputs.validated_fields(MemoryChanges, changes, categories=self._categories)
        fields = {name: getattr(given, name) for name in given.model_fields_set}
        if task := fields.get("task_metadata"):
            fields["task_metadata"] = task.timed(self._now())
        masked, found = self._settled(fields, memory_id, said, self._on_secret())
        memory = self._store.update(
            memory_id, {**fields, **masked}, session_id=self.session_id, version=if_version
        )
        if found is not None:
            tell_secrets([found], said)
        self._mover.follow()
        return memory

    def delete(self, memory_id: str) -> Memory:
        """Delete a memory and return it as it was; it stays in the history.

        Raises ``MemoryNotFound``.
        """
        return self._store.delete(memory_id, session_id=self.session_id)

    def _tell_stored(self, memories: Sequence[Memory], added: Added, spent: float) -> None:
        """Tell those who listen what is new, and what its vectors cost."""
        if added.new and self._events.are_heard():
            cost = self.embedding_usage.cost_usd - spent
            self._events.stored(memories, added, backend=self._store.backend(), cost_usd=cost)

    def _on_secret(self) -> OnSecret:
        return OnSecret(self._store.config().on_secret)

    def _screened(
        self,
        memory: Memory,
        said: SecretPolicy | None,
        setting: OnSecret,
        *,
        index: int | None = None,
    ) -> tuple[Memory, FoundSecrets | None]:
        """Return a memory as it may be stored, and what looks like a secret in it."""
        masked, found = self._settled(dict(memory), memory.id, said, setting, index=index)
        return (memory.model_copy(update=masked) if masked else memory), found

    def _settled(
        self,
        values: Mapping[str, Any],
        memory_id: str,
        said: SecretPolicy | None,
        setting: OnSecret,
        *,
        index: int | None = None,
    ) -> tuple[dict[str, Any], FoundSecrets | None]:
        from agent_memory.services.policies.secrets import settled  # noqa: PLC0415 - a search needs none of it

        return settled(
            values,
            memory_id=memory_id,
            setting=setting,
            said=said,
            scanner=self._secret_scanner,
            index=index,
        )

    def _memory(self, item: Mapping[str, Any], *, at: Sequence[int] = ()) -> Memory:
        """Make the model of what a caller stores."""
        given = inputs.validated_fields(MemoryInput, item, categories=self._categories, at=at)
        now = self._now()
        fields = given.model_dump(exclude={"id", "session_id", "timestamp", "task_metadata"})
        return Memory.model_construct(
            id=given.id or new_memory_id(),
            **fields,
            task_metadata=given.task_metadata and given.task_metadata.timed(now),
            agent_id=self.agent_id,
            created_by_session=given.session_id or self.session_id,
            timestamp=given.timestamp or now,
            updated_at=now,
        )


def tell_secrets(noticed: Sequence[FoundSecrets], said: SecretPolicy | None) -> None:
    """Log what was found, unless the caller's own function was told of it."""
    if not callable(said):
        from agent_memory.services.policies.secrets import log  # noqa: PLC0415 - imported when it was found

        log(noticed)
