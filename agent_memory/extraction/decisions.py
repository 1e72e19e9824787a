"""From facts to decisions: what each means for the memories that are related to it.

The model sees small numbers instead of ids, so an id that it invents can touch nothing. Facts
without a usable answer are added as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agent_memory.extraction.decision_checks import DecisionAnswer, DecisionChecks
from agent_memory.extraction.llm.ask import ask, name_of
from agent_memory.extraction.llm.prompts import DECISION_SCHEMA, decision_messages
from agent_memory.extraction.rules.decisions import apply_rules, decide_by_rules
from agent_memory.extraction.types import By, Fact, OperationPlan, RelatedMemory, ReplacedBy
from agent_memory.models.protocols import LanguageModel
from agent_memory.text.counts import counted

__all__ = ["decide", "decide_by_rules"]

ATTEMPTS: Final = 3
AT_A_TIME: Final = 10
"""Facts that a model decides about in one answer: about 700 tokens of it."""
_LONGEST_SHOWN: Final = 2_000
"""Maximum characters of a memory that a model may rewrite. A longer one would lose parts."""


def decide(
    facts: Sequence[Fact],
    related: Sequence[Sequence[RelatedMemory]],
    model: LanguageModel | None,
    *,
    prompt: str | None = None,
    replaced_by: ReplacedBy | None = None,
) -> OperationPlan:
    """Return what to do about facts; ``related`` has the memories to compare each with.

    Without a model, or if its provider fails, rules decide. ``prompt`` replaces the model's
    instructions, but not the data or the answer's format (C: ``custom_update_memory_prompt``).
    ``problems`` lists what was refused or corrected.

    - An operation is refused if its memory was not given, or if an earlier operation is about that
      memory; the facts are added instead.
    - A DELETE is accepted if a fact asks for it, or if its new facts are added by other operations;
      otherwise the memory is updated with the fact.
    - A fact that no operation is about is added. So are all facts, if no answer is usable.

    Raises ``ConfigurationError`` if the model's settings are wrong, and nothing else.
    """
    if model is None:
        return decide_by_rules(facts, related, replaced_by)
    deciding = _Deciding(model, prompt, DecisionChecks(facts, related, replaced_by))
    for start in range(0, len(facts), AT_A_TIME):
        deciding.decide(range(start, min(start + AT_A_TIME, len(facts))))
    by: By = "model" if deciding.answered or not facts else "rules" if deciding.is_down else "raw"
    used = name_of(model) if by == "model" else by
    return deciding.checks.plan(
        by=by, model_used=used, was_model_asked=True, has_failed=deciding.is_down
    )


@dataclass
class _Deciding:
    model: LanguageModel
    prompt: str | None
    checks: DecisionChecks
    answered: int = 0
    is_down: bool = False

    def decide(self, places: Sequence[int]) -> None:
        """Decide about the facts at some positions."""
        checks = self.checks
        related = _numbered(places, checks)
        came = None
        if not self.is_down:
            came = ask(
                self.model,
                decision_messages([checks.facts[place] for place in places], related, self.prompt),
                DECISION_SCHEMA,
                DecisionAnswer,
                attempts=ATTEMPTS,
            )
            checks.problems += [f"decision: {problem}" for problem in came.problems]
            self.is_down = came.has_failed
        if self.is_down:
            apply_rules(checks, places)
            checks.problems.append(
                f"decision: rules decided about {counted(len(places), 'fact', 'facts')} instead"
            )
        elif came is not None and came.answer is not None:
            self.answered += 1
            checks.take_answer(came.answer, places, related)
            self._add_the_rest(places, "no decision about them is valid")
        else:
            self._add_the_rest(places, "the model gave no usable decision")

    def _add_the_rest(self, places: Sequence[int], why: str) -> None:
        count = self.checks.add_the_rest(places, why)
        if count:
            added = counted(count, "fact is added as it is", "facts are added as they are")
            self.checks.problems.append(f"decision: {added}: {why}")


def _numbered(places: Sequence[int], checks: DecisionChecks) -> dict[str, RelatedMemory]:
    """Return the memories that a model may decide about, by small numbers."""
    memories = {
        memory.id: memory
        for place in places
        for memory in checks.related[place]
        if len(memory.text) <= _LONGEST_SHOWN and not checks.is_touched(memory)
    }
    return {str(number): memory for number, memory in enumerate(memories.values())}
