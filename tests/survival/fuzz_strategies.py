"""Fuzz by hypothesis: what it finds, it makes as small as it can before it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from agent_memory import AgentMemory, ValidationError

from .fuzz_core import Trials, broken_unless, workplace
from .tally import Tally
from .verbs import NAME, opened, sentences

_TEXTS: Final = st.text(max_size=60)
_PLAIN: Final = st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS
_DATA: Final = st.recursive(
    _PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4)
)
_OPERATORS: Final = st.sampled_from(
    "eq ne gt gte lt lte in nin contains icontains odd".split()
)  # fmt: skip
_CONDITIONS: Final = st.recursive(
    st.dictionaries(_TEXTS, _DATA | st.dictionaries(_OPERATORS, _DATA, max_size=2), max_size=3),
    lambda inner: st.dictionaries(
        st.sampled_from(("AND", "OR", "NOT")), inner | st.lists(inner, max_size=3), max_size=2
    ),
)
_Act = Callable[[AgentMemory, Any], object]


def strategies(cases: int, seed_of_part: str) -> Tally:
    """Ask, filter and store what hypothesis thinks of."""
    tally = Tally()
    kinds = len(_ACTS)
    for place, (name, (strategy, act)) in enumerate(_ACTS.items()):
        with workplace() as folder, opened(folder / NAME, synchronous="NORMAL") as memory:
            memory.store_many(sentences(8))
            number = (cases + kinds - 1) // kinds
            tally.add(_tried(name, strategy, act, memory, number, f"{seed_of_part}/{place}"))
    return tally


def _tried(
    name: str,
    strategy: st.SearchStrategy[Any],
    act: _Act,
    memory: AgentMemory,
    cases: int,
    seed_: str,
) -> Tally:
    """Try examples; of those that went wrong, the smallest is told."""
    tally, last = Tally(), Tally()

    @seed(seed_)
    @settings(
        max_examples=cases,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def example(value: Any) -> None:
        nonlocal last
        trials = Trials(f"hypothesis: {name}", seed_)
        trials.run(lambda: act(memory, value), value, allowed=(ValidationError,))
        if trials.tally.harm:
            last = trials.tally
        assert not trials.tally.harm
        tally.add(trials.tally)

    try:
        example()
    except AssertionError:
        tally.add(last)
    while tally.cases < cases:  # hypothesis knew of no more that were different
        example.hypothesis.inner_test(tally.cases)  # type: ignore[attr-defined]
    return tally


def _stored(memory: AgentMemory, fields: dict[str, Any]) -> None:
    name = memory.store(**fields, on_duplicate="keep")
    there = memory.get(name)
    assert there is not None
    broken_unless(there.content == fields["content"], "is another content", count="lost")
    broken_unless(there.metadata == fields["metadata"], "is another metadata", count="lost")
    memory.delete(name)


_ACTS: Final[dict[str, tuple[st.SearchStrategy[Any], _Act]]] = {
    "texts": (st.text(max_size=200), lambda memory, text: memory.search(text)),
    "filters": (
        _CONDITIONS,
        lambda memory, it: memory.list_recent(filters={"custom_filters": it}),
    ),
    "contents": (
        st.fixed_dictionaries(
            {"content": _TEXTS, "metadata": st.dictionaries(_TEXTS, _DATA, max_size=3)}
        ),
        _stored,
    ),
}
