"""The verbs of document C: learning from conversations, reviews, and whole scopes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_memory.api.arguments import check_fraction, check_ids, check_review_ids, join_filters
from agent_memory.api.plain_arguments import check_whole_number
from agent_memory.api.retrieval import RetrievalVerbs
from agent_memory.api.writing import WritingVerbs, log_secrets
from agent_memory.errors import SecretFound, ValidationError
from agent_memory.models.agent import AgentConfig
from agent_memory.models.memory import Memory
from agent_memory.models.search import SearchFilters
from agent_memory.services.search.ranking import RankingRates
from agent_memory.services.search.request import SearchRequest

if TYPE_CHECKING:
    from agent_memory.extraction.llm.registry import ModelSpec
    from agent_memory.extraction.transcript import Transcript
    from agent_memory.models.conversation import Message
    from agent_memory.models.decision import Decision, DecisionOutcome, Review
    from agent_memory.models.documents.responses import AddMemoryResponse
    from agent_memory.models.graph import EdgeView
    from agent_memory.models.safety import FoundSecrets

    Messages = (
        str | Mapping[str, Any] | Message | Sequence[Mapping[str, Any] | Message] | Transcript
    )

_ALL: Final = 2**62
MIN_CONFIDENCE: Final = 0.6
"""A decision that is less sure than this deletes nothing: somebody is asked (``reviews``)."""


class ConversationVerbs(WritingVerbs, RetrievalVerbs):
    """Learning from conversations. ``AgentMemory`` has these verbs."""

    def add(
        self,
        messages: Messages,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        llm: ModelSpec = None,
        extraction_prompt: str | None = None,
        update_prompt: str | None = None,
        min_confidence: float = MIN_CONFIDENCE,
        may_delete: bool = True,
        graph: bool = False,
        dry_run: bool = False,
        strict: bool = False,
        is_confidential: bool = False,
    ) -> AddMemoryResponse:
        """Learn from a conversation, and return what was done.

        ``messages`` is one message, a list of them, or a text; each has ``role``, ``content`` and
        more. Facts are extracted from them. Each is compared with what is known about the same user
        (and run, if one is given) and leads to a new memory, a changed one, a deleted one, or
        nothing. All of it is one transaction and one ``undo``, and replaced texts stay in the
        history. System messages are ignored.

        ``llm`` lets a language model extract and decide: an object of the protocol
        ``LanguageModel``, a function, ``"openai:gpt-4.1-mini"``, ``"anthropic:…"``, or the ``llm``
        part of the settings. Without one, rules do it: they keep statements word for word and
        change little. If the model fails or its answers cannot be used, nothing is lost: the
        messages are kept as they are and ``metadata.problems`` says why. A provider that failed is
        not called again within the same ``add``. A decision with a confidence under
        ``min_confidence`` (0 to 1), or a deletion while ``may_delete`` is false, is not carried out
        but put up for review: see ``reviews``.

        With ``graph``, the relationships that the memories state are added to ``AgentMemory.graph``
        in the same transaction. When a memory is changed, relationships that it no longer states
        are closed.

        Transcripts of OpenAI, Anthropic, LangChain, Amplifier and MCP are accepted as they are.
        Messages that nobody said, such as tool calls, are skipped (``metadata.passed_over``).
        Unreadable messages are left out and reported, or refused if ``strict``. A mapping may be a
        whole request, with ``user_id``, ``run_id``, ``agent_id``, ``category``, ``tags`` and
        ``metadata`` beside its messages. An unknown key (``userId``) or a value that contradicts an
        argument is refused. In the result, ``facts`` and ``operations`` show what was extracted and
        why it was decided as it was.

        ``metadata`` is kept with each new memory; its ``category`` and ``tags`` become the memory's
        own. ``infer=False`` stores each message as it is, split into several memories beyond 10,000
        characters. ``dry_run`` only reports. The two prompts replace the model's built-in
        instructions. With ``is_confidential``, which sessions set, a refusal reveals nothing about
        the rest of the file. Secrets are treated as the setting ``on_secret`` says;
        ``metadata.secrets`` lists those stored.

        A fact that may not be stored (a hard limit, a rejected value, a refused secret) does not
        keep out the others: ``metadata.problems`` says why. If nothing else came of the messages,
        ``success`` is false.

        Raises ``ValidationError`` for messages or ids that cannot be used, and
        ``ConfigurationError`` when the model is not available.
        """
        from agent_memory.extraction import add, pipeline  # noqa: PLC0415 - an edge

        for name, prompt in (
            ("extraction_prompt", extraction_prompt),
            ("update_prompt", update_prompt),
        ):
            if prompt is not None and not isinstance(prompt, str):
                raise ValidationError.of(name, "must be a string", prompt)
        if not dry_run:
            self._store.refuse_read_only()  # before a model is paid
        settings = self._store.config()
        secrets: dict[str, FoundSecrets] = {}
        request = add.AddRequest(
            messages=messages,
            user_id=user_id,
            agent_id=agent_id,
            run_id=run_id,
            metadata=metadata or {},
            llm=llm,
            extraction_prompt=extraction_prompt,
            update_prompt=update_prompt,
            min_confidence=check_fraction(min_confidence, name="min_confidence"),
            may_delete=may_delete,
            graph=graph,
            strict=strict,
        )
        port = pipeline.MemoryPort(
            agent_id=self.agent_id,
            categories=settings.categories,
            find_related=self._look_up,
            list_recent=lambda scope, limit: self._store.recent(scope, limit=limit, offset=0),
            corrections=self._store.decisions.corrections,
            replaced_by=self._store.decisions.replaced_by,
            prepare=partial(
                self._prepare, settings=settings, secrets=secrets, is_confidential=is_confidential
            ),
            apply=partial(self._apply_decisions, is_confidential=is_confidential),
            secrets=secrets,
            screen=lambda memory: self._apply_secret_policy(memory, None, settings)[1],
            edges=self._edges,
            last_change=self._store.decisions.last_change,
        )
        answer = add.add(port, request, infer=infer, dry_run=dry_run, now=self._now)
        if answer.metadata.secrets and not dry_run:
            log_secrets(answer.metadata.secrets, None)
        return answer

    # Reviews ----------------------------------------------------------------------------------

    def reviews(self) -> list[Review]:
        """Return the memories that wait for a decision of yours, oldest first."""
        return self._store.decisions.reviews()

    def under_review(self, memory_ids: str | Iterable[str]) -> set[str]:
        """Return those of some memories that a newer one may correct, as a search marks its hits.

        Until somebody decides: also where the newer one was edited since.
        """
        return self._store.decisions.under_review(check_ids(memory_ids))

    def approve(self, review_id: int) -> Memory:
        """Delete the memory under review and return it as it was; ``undo`` brings it back.

        If only a part of it is contradicted, it is shortened to ``Review.remaining`` instead.

        Raises ``ValidationError`` if there is no such review, or if the rest cannot be said.
        """
        return self.decide(approve=[review_id])[0][0]

    def dismiss(self, review_id: int) -> Review:
        """Keep the memory under review, close the review and return it; ``undo`` opens it again.

        Raises ``ValidationError`` if there is no such review.
        """
        return self.decide(dismiss=[review_id])[1][0]

    def decide(
        self, *, approve: Sequence[int] = (), dismiss: Sequence[int] = ()
    ) -> tuple[list[Memory], list[Review]]:
        """Approve some reviews and dismiss others by their ids, all or none.

        Returns each memory that was deleted or shortened, as it was, and the dismissed reviews.
        Several approved reviews of one memory shorten it once. Raises ``ValidationError`` as
        ``approve`` and ``dismiss`` do; then nothing was decided.
        """
        approve = check_review_ids("approve", approve)
        dismiss = check_review_ids("dismiss", dismiss)
        return self._store.decisions.decide(approve, dismiss, session_id=self.session_id)

    # Scopes -----------------------------------------------------------------------------------

    def get_all(
        self,
        *,
        user_id: str | None = None,
        run_id: str | None = None,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Memory]:
        """Return the memories of a scope, newest first; without a scope, all of them.

        With ``limit`` at most so many, after the first ``offset``.
        """
        scope = join_filters(filters, user_id=user_id, run_id=run_id)
        most = _ALL if limit is None else check_whole_number("limit", limit, lowest=1)
        offset = check_whole_number("offset", offset, lowest=0)
        return self._store.recent(scope, limit=most, offset=offset)

    def delete_all(
        self,
        *,
        user_id: str | None = None,
        run_id: str | None = None,
        filters: SearchFilters | Mapping[str, Any] | None = None,
    ) -> list[Memory]:
        """Delete the memories of a scope, archived ones too, and return them as they were.

        They stay in the history, and one ``undo`` brings all of them back. Raises
        ``ValidationError`` if no scope is given: ``reset`` is the verb that deletes everything.
        """
        scope = join_filters(filters, user_id=user_id, run_id=run_id)
        if not scope.are_narrowing():
            message = "no scope is given, so every memory would be deleted: use `reset` for that"
            raise ValidationError.of("user_id", message, user_id)
        if "archived" not in scope.model_fields_set:
            scope = scope.model_copy(update={"archived": None})
        ids = self._store.ids(scope)
        everything = self._store.count(SearchFilters(archived=None))
        if scope.user_id is None and scope.run_id is None and 1 < len(ids) == everything:
            # Filters such as {"AND": []} leave nothing out.
            message = "these filters match every memory: use `reset` to delete everything"
            raise ValidationError.of("filters", message, filters)
        return self._store.lifecycle.delete(ids, session_id=self.session_id)

    def reset(self, *, confirm: str) -> int:
        """Delete every memory and return how many there were. The file is backed up first.

        ``confirm`` must be the agent's id. The memories stay in the history, and one ``undo``
        brings all of them back; use ``erase`` to leave nothing. Raises ``ValidationError``.
        """
        if confirm != self.agent_id:
            message = f"must be the agent's id, {self.agent_id!r}, because every memory is deleted"
            raise ValidationError.of("confirm", message, confirm)
        ids = self._store.ids(SearchFilters(archived=None))
        if ids:
            self._store.lifecycle.back_up_before("reset")
        return len(self._store.lifecycle.delete(ids, session_id=self.session_id))

    # Inside -----------------------------------------------------------------------------------

    def _look_up(self, text: str, filters: SearchFilters, limit: int) -> list[Memory]:
        request = SearchRequest(
            query=text,
            filters=filters,
            limit=limit,
            rates=RankingRates(0.0, 0.0),  # what is old is known as well
        )
        return [hit.memory for hit in self._look(request)]

    def _edges(self, user_id: str | None, run_id: str | None) -> list[EdgeView]:
        """Return what holds in one user's graph; for ``None``, in that of nobody in particular."""
        edges = self.graph.relationships(user_id=user_id, run_id=run_id)
        return [edge for edge in edges if edge.user_id == user_id]

    def _prepare(
        self,
        item: Mapping[str, Any],
        *,
        settings: AgentConfig,
        secrets: dict[str, FoundSecrets],
        is_confidential: bool = False,
    ) -> Memory:
        """Return the memory of an item as it may be stored: valid, and its secrets masked.

        What looks like secrets is added to ``secrets``. Raises what ``store`` would raise, but for
        what only the file can tell.
        """
        memory = self._build_memory(item, settings)
        try:
            memory, its_secrets = self._apply_secret_policy(memory, None, settings)
        except SecretFound as error:
            if is_confidential:
                raise error.without_details() from None
            raise
        if its_secrets is not None:
            secrets[memory.id] = its_secrets
        return memory

    def _apply_decisions(
        self,
        decisions: Sequence[Decision],
        *,
        keep_copies: bool,
        since: int | None = None,
        is_confidential: bool = False,
    ) -> tuple[list[DecisionOutcome], list[str]]:
        spent = self.embedding_usage.cost_usd
        applied = self._store.decisions.apply(
            decisions,
            session_id=self.session_id,
            keep_copies=keep_copies,
            since=since,
            is_confidential=is_confidential,
        )
        self._auto_migration.follow(len(decisions))
        self._publish_stored(applied.memories, applied.added, spent)
        return applied.outcomes, applied.problems
