"""Whether ``add`` by rules keeps what is true: four shares, of cases in a JSON file.

==========  ============================================  ==================================
key         cases                                         counted
==========  ============================================  ==================================
``keep``    plain statements of a user                    dropped: ``add`` leaves no memory
``pairs``   ``there`` is added, then ``said``; where      overwritten: ``there`` is gone
            ``replaces`` is false, both are true
            where it is true, ``said`` corrects           unseen: ``there`` is left, and no
                                                          review names it
``noise``   small talk and one-off requests, each         stored: ``add`` changes something
            answered with "ok"
==========  ============================================  ==================================

A needless review is one of a pair in which both are true.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from agent_memory import AgentMemory

KEYS = frozenset({"keep", "pairs", "noise"})


@dataclass
class Share:
    """The number of cases that went wrong, and which."""

    of: int = 0
    cases: list[str] = field(default_factory=list)

    def count(self, case: str, *, is_wrong: bool) -> None:
        """Count a case."""
        self.of += 1
        if is_wrong:
            self.cases.append(case)

    @property
    def share(self) -> float:
        """Return the share that went wrong."""
        return len(self.cases) / max(1, self.of)


@dataclass
class Truth:
    """The four shares, and that of needless reviews."""

    dropped: Share = field(default_factory=Share)
    overwritten: Share = field(default_factory=Share)
    unseen: Share = field(default_factory=Share)
    stored: Share = field(default_factory=Share)
    needless: Share = field(default_factory=Share)

    def print(self, *, shown: int = 0) -> None:
        """Print the shares, and for each up to ``shown`` of the cases that went wrong."""
        for name, share in (
            ("statements dropped", self.dropped),
            ("true memories overwritten", self.overwritten),
            ("corrections unseen", self.unseen),
            ("noise stored", self.stored),
            ("needless reviews", self.needless),
        ):
            print(f"{name:28}{len(share.cases):4} of {share.of:4}  {share.share:6.1%}")
            for case in share.cases[:shown]:
                print("  -", case)


def measure(cases: Mapping[str, Any]) -> Truth:
    """Try the cases, each with its own user in one store."""
    truth = Truth()
    with _store() as memory:
        users = (f"u{number}" for number in range(1_000_000))
        for text in cases["keep"]:
            answer = memory.add(text, user_id=next(users))
            truth.dropped.count(text, is_wrong=not answer.data)
        for text in cases["noise"]:
            chat = [{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}]
            answer = memory.add(chat, user_id=next(users))
            truth.stored.count(text, is_wrong=bool(answer.data))
        for pair in cases["pairs"]:
            _try(memory, pair, next(users), truth)
    return truth


def _try(memory: AgentMemory, pair: Mapping[str, Any], user_id: str, truth: Truth) -> None:
    added = memory.add(pair["there"], user_id=user_id).data
    memory_id = added[0].id if added else memory.store(pair["there"], user_id=user_id)
    reviews = memory.add(pair["said"], user_id=user_id).metadata.reviews
    existing = memory.get(str(memory_id))
    is_left = existing is not None and pair["there"] in existing.content
    case = f"{pair['there']} | {pair['said']}"
    if pair["replaces"]:
        is_asked = any(review.memory_id == memory_id for review in memory.reviews())
        truth.unseen.count(case, is_wrong=is_left and not is_asked)
    else:
        truth.overwritten.count(case, is_wrong=not is_left)
        truth.needless.count(case, is_wrong=bool(reviews))


@contextmanager
def _store() -> Iterator[AgentMemory]:
    with (
        tempfile.TemporaryDirectory() as root,
        AgentMemory("bench", root=root, embedder=None, synchronous="NORMAL") as memory,
    ):
        yield memory
