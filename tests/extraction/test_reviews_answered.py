"""Reviews that are approved, dismissed and undone: memories and graph agree after each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest
from conftest import Clock

from agent_memory import AgentMemory, Review, ValidationError
from agent_memory.cli.reports import reviews_text
from agent_memory.extraction.rules.remainders import remainder

State = tuple[set[str], set[tuple[str, str]]]


@pytest.fixture
def memory(root: Path, clock: Clock) -> Iterator[AgentMemory]:
    with AgentMemory("bob", root=root, clock=clock, embedder=None) as opened:
        yield opened
        assert opened.check().problems == []


@pytest.fixture
def clock() -> Clock:
    return Clock()


def add(memory: AgentMemory, clock: Clock, *texts: str) -> None:
    for text in texts:
        clock.forward(days=1)
        memory.add(text, user_id="u", graph=True)
    clock.forward(days=1)


def state(memory: AgentMemory) -> State:
    edges = {(edge.relationship, edge.target) for edge in memory.graph.relationships()}
    return {each.content for each in memory.list_recent()}, edges


def test_the_graph_loses_the_part_that_a_memory_loses(memory: AgentMemory, clock: Clock) -> None:
    add(memory, clock, "I like snakes and spiders.", "I don't like spiders.")
    both = state(memory)
    assert both[1] == {("likes", "snakes"), ("likes", "spiders")}
    (review,) = memory.reviews()
    memory.approve(review.review_id)
    clock.forward(days=1)
    left = {"I like snakes.", "I don't like spiders."}, {("likes", "snakes")}
    assert state(memory) == left
    (memory_id,) = [it.id for it in memory.list_recent() if it.content == "I like snakes."]
    assert (memory_id, memory.history(memory_id)[0].event) == (review.memory_id, "UPDATE")
    memory.undo()
    assert state(memory) == both
    assert memory.reviews() == [review]
    memory.approve(review.review_id)
    assert state(memory) == left


def test_what_another_memory_says_too_stays_in_the_graph(memory: AgentMemory, clock: Clock) -> None:
    add(memory, clock, "I like snakes and spiders.", "I like spiders.", "I don't like spiders.")
    _, part = sorted(memory.reviews(), key=lambda review: bool(review.remaining))
    memory.approve(part.review_id)
    assert state(memory)[1] == {("likes", "snakes"), ("likes", "spiders")}


@pytest.mark.parametrize("run_id", [None, "r"])
def test_what_was_stated_by_hand_stays_in_the_graph(
    memory: AgentMemory, clock: Clock, run_id: str | None
) -> None:
    """Shortening the memory closed what somebody had stated, too."""
    add(memory, clock, "I like snakes and spiders.")
    memory.graph.add("USER_ID", "likes", "spiders", user_id="u", run_id=run_id)
    add(memory, clock, "I don't like spiders.")
    (review,) = memory.reviews()
    memory.approve(review.review_id)
    clock.forward(days=1)
    left = {"I like snakes.", "I don't like spiders."}, {("likes", "snakes"), ("likes", "spiders")}
    assert state(memory) == left
    memory.undo()
    assert state(memory)[1] == left[1]


def test_two_parts_are_denied_one_by_one(memory: AgentMemory, clock: Clock) -> None:
    add(memory, clock, "I grow figs, plums and kale.", "I no longer grow kale.", "I sold the figs.")
    first, second = memory.reviews()
    assert (first.remaining, second.remaining) == (
        "I grow figs and plums.",
        "I grow plums and kale.",
    )
    memory.approve(first.review_id)
    (second,) = memory.reviews()
    assert second.remaining == "I grow plums."
    clock.forward(days=1)
    memory.approve(second.review_id)
    assert "I grow plums." in state(memory)[0]
    memory.undo()
    (second,) = memory.reviews()
    assert (second.content, second.remaining) == ("I grow figs and plums.", "I grow plums.")
    memory.approve(second.review_id)


_LOOKS = """
import sys
from agent_memory import AgentMemory

def is_read():
    return "agent_memory.extraction.rules.remainders" in sys.modules

with AgentMemory("bob", root=sys.argv[1], embedder=None) as memory:
    session = memory.session({"user_id": "u"})
    first, second = session.reviews()
    session.dismiss(first.review_id)
    assert not is_read()
    print(second.remaining, second.model_dump()["remaining"], is_read())
"""


def test_what_remains_is_read_only_of_the_reviews_that_are_looked_at(
    memory: AgentMemory, clock: Clock, root: Path
) -> None:
    add(memory, clock, "I grow figs and kale.", "I no longer grow kale.")
    add(memory, clock, "I own a bike and a car.", "I sold the car.")
    done = subprocess.run(
        [sys.executable, "-c", _LOOKS, str(root)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("I own a bike. I own a bike. True\n", "")


def test_a_dismissed_review_says_what_would_have_been_left(
    memory: AgentMemory, clock: Clock
) -> None:
    add(memory, clock, "I grow figs and kale.", "I no longer grow kale.")
    (review,) = memory.reviews()
    assert memory.dismiss(review.review_id) == review
    assert review.remaining == "I grow figs."


def test_a_review_that_is_built_from_json_knows_what_remains(
    memory: AgentMemory, clock: Clock
) -> None:
    """It claimed that approving leaves nothing."""
    add(memory, clock, "I grow figs and kale.", "I no longer grow kale.")
    add(memory, clock, "I live in Oslo.", "I moved to Rome.")
    add(memory, clock, "I sew and draw.", "I no longer sew.")
    reviews = memory.reviews()
    assert [each.remaining for each in reviews] == ["I grow figs.", "", None]
    for review in reviews:
        text = review.model_dump_json()
        for again in (Review.model_validate_json(text), Review(**review.model_dump())):
            assert (again.remaining, again.model_dump_json()) == (review.remaining, text)
    without = reviews[1].model_dump(exclude={"remaining"})
    assert Review.model_validate(without).remaining is None
    with pytest.raises(pydantic.ValidationError, match="a text or null"):
        Review.model_validate({**without, "remaining": 3})


Reviews = list[tuple[int, str | None]]


def whole(memory: AgentMemory) -> tuple[State, Reviews]:
    return state(memory), [(each.review_id, each.remaining) for each in memory.reviews()]


def test_undo_and_redo_of_an_approval_mirror_each_other(memory: AgentMemory, clock: Clock) -> None:
    add(memory, clock, "I like snakes and spiders.", "I don't like spiders.", "I hate spiders.")
    before = whole(memory)
    memory.approve(before[1][0][0])
    after = whole(memory)
    assert after[1] == []  # both deny the same part
    for left in (before, after) * 3:
        clock.forward(days=1)
        memory.undo()
        assert whole(memory) == left


@pytest.mark.parametrize("again", [False, True])
def test_undo_of_an_approved_review_brings_the_text_back(
    memory: AgentMemory, clock: Clock, again: bool
) -> None:
    add(memory, clock, "I like snakes and spiders.", "I don't like spiders.")
    before = whole(memory)
    ((review_id, _),) = before[1]
    memory.approve(review_id)
    clock.forward(days=1)
    for _ in range(2 if again else 0):
        memory.undo()
        clock.forward(days=1)
    assert memory.undo(review_id=review_id).verb == "UPDATE"
    assert whole(memory) == before
    with pytest.raises(ValidationError, match="no such dismissed review"):
        memory.undo(review_id=review_id)


def test_undo_of_an_approved_review_says_what_to_undo_first(
    memory: AgentMemory, clock: Clock
) -> None:
    add(memory, clock, "I like snakes and spiders.", "I don't like spiders.")
    (review,) = memory.reviews()
    memory.approve(review.review_id)
    clock.forward(days=1)
    memory.update(review.memory_id, content="I like snakes and newts.")
    before = whole(memory)
    with pytest.raises(ValidationError, match=r"change \d+ \(UPDATE\): undo that one first"):
        memory.undo(review_id=review.review_id)
    assert whole(memory) == before


def test_what_was_dismissed_before_an_approval_is_asked_again_about_the_rest(
    memory: AgentMemory, clock: Clock
) -> None:
    add(memory, clock, "I grow figs, plums and kale.", "I no longer grow kale.", "I sold the figs.")
    first, second = (review.review_id for review in memory.reviews())
    memory.dismiss(second)
    clock.forward(days=1)
    memory.approve(first)
    clock.forward(days=1)
    assert memory.undo(review_id=second).verb == "dismiss"
    assert whole(memory)[1] == [(second, "I grow plums.")]
    clock.forward(days=1)
    memory.approve(second)
    assert "I grow plums." in state(memory)[0]
    memory.undo()
    memory.undo(review_id=first)
    assert whole(memory)[1] == [
        (first, "I grow figs and plums."),
        (second, "I grow plums and kale."),
    ]


def test_one_memory_is_not_kept_and_deleted_at_once(memory: AgentMemory, clock: Clock) -> None:
    """It was deleted and reported as kept, and the next undo was refused."""
    add(memory, clock, "I live in Oslo.", "I no longer live in Oslo.", "I moved to Paris.")
    of_oslo = [each for each in memory.reviews() if each.content == "I live in Oslo."]
    first, second = [each.review_id for each in of_oslo]
    with pytest.raises(ValidationError, match="keeps memory"):
        memory.decide(approve=[first], dismiss=[second])
    with pytest.raises(ValidationError, match="both approved and dismissed"):
        memory.decide(approve=[first], dismiss=[first])
    assert memory.get(of_oslo[0].memory_id) is not None
    assert {first, second} <= {each.review_id for each in memory.reviews()}


def test_a_memory_that_somebody_changed_is_not_shortened(memory: AgentMemory, clock: Clock) -> None:
    add(memory, clock, "I grow figs and plums.", "I no longer grow plums.")
    (review,) = memory.reviews()
    memory.update(review.memory_id, content="I grow figs, plums and kale.")
    with pytest.raises(ValidationError, match="changed since"):
        memory.approve(review.review_id)


def test_what_was_corrected_by_hand_is_not_called_contradicted(
    memory: AgentMemory, clock: Clock
) -> None:
    """Its review said of the corrected text that it is contradicted."""
    text = "Lisa can't have dairy. Mia hates mushrooms."
    add(memory, clock, text, "Actually it's Ben who hates mushrooms, not Mia.")
    (review,) = memory.reviews()
    assert (review.content, review.remaining) == (text, None)
    memory.update(review.memory_id, content=text.replace("Mia", "Ben"))
    clock.forward(days=1)
    (edited,) = memory.reviews()
    assert (edited.review_id, edited.replaced_by, edited.remaining) == (
        review.review_id,
        None,
        None,
    )
    assert edited.reasoning == "it was edited since: dismiss the review if it is right now"
    shown = reviews_text([edited])
    assert "edited since" in shown
    assert "contradicted" not in shown
    with pytest.raises(ValidationError, match="changed since"):
        memory.approve(edited.review_id)
    assert memory.dismiss(edited.review_id) == edited
    assert memory.reviews() == []
    memory.undo()
    assert memory.reviews() == [edited]


def test_what_contradicted_it_before_it_was_edited_deletes_nothing(
    memory: AgentMemory, clock: Clock
) -> None:
    """Approving deleted Oslo because of "I like tea."."""
    add(memory, clock, "I live in Oslo.", "I moved to Bergn.")
    (asked,) = memory.reviews()
    assert asked.replaced_by is not None
    clock.forward(days=1)
    memory.update(asked.replaced_by, content="I moved to Bergen.", tags=["home"])
    (corrected,) = memory.reviews()  # the name: it contradicts as before
    assert (corrected.replaced_by, corrected.remaining) == (asked.replaced_by, "")
    memory.update(asked.replaced_by, content="I like tea.")
    (edited,) = memory.reviews()
    assert (edited.review_id, edited.replaced_by, edited.remaining) == (asked.review_id, None, None)
    assert edited.reasoning is not None
    assert "what contradicted it was edited since" in edited.reasoning
    assert "contradicted by" not in reviews_text([edited])
    with pytest.raises(ValidationError, match="what contradicted it, has changed since"):
        memory.approve(edited.review_id)
    memory.update(asked.replaced_by, content="I moved to Bergen.")
    memory.approve(asked.review_id)
    assert memory.get(asked.memory_id) is None


def test_the_rest_may_not_be_what_is_rejected(memory: AgentMemory, clock: Clock) -> None:
    add(memory, clock, "I grow figs and plums.", "I no longer grow plums.")
    before = state(memory)
    memory.reject("figs")
    (review,) = memory.reviews()
    with pytest.raises(ValidationError):
        memory.approve(review.review_id)
    assert state(memory) == before
    assert memory.reviews() == [review]


@pytest.mark.parametrize(
    ("text", "newer", "rest"),
    [
        ("I own a bike, a boat, and a car.", "I sold the car.", "I own a bike and a boat."),
        ("Ann: I teach art and maths.", "Ann: I no longer teach maths.", "Ann: I teach art."),
        ("User speaks Thai and Lao", "User no longer speaks Lao", "User speaks Thai"),
        ("We use Vim, Emacs and Nano.", "We moved from Emacs to Helix.", "We use Vim and Nano."),
        ("I teach art, maths, and Thai.", "I no longer teach Thai.", None),
        ("I speak Thai, Lao, Ewe and Twi.", "I no longer speak Lao.", "I speak Thai, Ewe and Twi."),
        ("I speak Thai, Lao, Ewe and Twi.", "I no longer speak Twi.", "I speak Thai, Lao and Ewe."),
        ("* I grow  figs,  plums and kale.", "I no longer grow kale.", "* I grow  figs and plums."),
        ("I have hens and geese.", "I no longer have hens.", None),
        ("I have hens and ducks.", "I no longer have hens.", "I have ducks."),
        ("I like hens and cook.", "I no longer like hens.", None),
        ("I like hens and cook.", "I no longer cook.", "I like hens."),
        ("User is a tailor.\nUser lives in Graz.", "User lives in Linz.", "User is a tailor."),
        ("I sew.\n\n- I own a boat.\n- I dance.", "I sold the boat.", "I sew.\n\n- I dance."),
        ("I am married. I have two kids.", "I got divorced.", "I have two kids."),
        ("My birthday is May 5, 1990.", "No, my birthday is May 6.", ""),
        ("I play rock and roll.", "I no longer play rock and roll.", ""),
        ("I own a red bike.", "I sold the bike.", ""),
        ("I live in Oslo, Norway.", "I moved to Rome.", ""),
        ("I work at Acme.", "I left Acme.", ""),
        ("I like hens & geese.", "I no longer like geese.", None),
        ("I like hens as well as geese.", "I no longer like geese.", None),
        ("I speak Thai and Lao.", "I no longer speak Thai or Lao.", ""),
        (
            "The demo is on Monday and Friday at 9.",
            "The demo is on Monday and Friday at 8 now.",
            "",
        ),
        ("I use Vim for the project.", "I switched to Emacs.", ""),
        ("I live in Salem, Oregon.", "I moved to Linz.", ""),
        ("I'm learning Thai.", "I gave up on Thai.", ""),
        ("I take 5 mg of biotin twice a day.", "I no longer take biotin.", ""),
        ("I drive a red van.", "I sold the van.", ""),
        ("Never use emojis.", "Use emojis from now on.", ""),
        ("My wife is called Clara.", "I got divorced.", ""),
        ("I work as a nurse.", "I retired.", ""),
        ("J'habite à Nantes.", "J'ai déménagé à Rennes.", ""),
        ("Alice likes pasta.", "Alice is allergic to wheat.", ""),
    ],
)
def test_what_remains(text: str, newer: str, rest: str | None) -> None:
    assert remainder(text, newer) == rest


@pytest.mark.parametrize(
    ("text", "newer"),
    [
        ("I bike and ski, but I still skate.", "I no longer ski."),
        ("I bike & ski.", "I no longer ski."),
        ("I like hens as well as geese.", "I no longer like geese."),
        ("I drink mate and, sometimes, cocoa.", "I no longer drink cocoa."),
        ("I drink mate and cocoa with milk.", "I no longer drink cocoa."),
        ("I drink cocoa and milk.", "I no longer drink cocoa with milk."),
        ("I drink mate, cocoa and milk.", "I no longer drink cocoa in the evening."),
        ("I drink neither mate nor cocoa and milk.", "I drink milk again."),
        ("I don't eat pork or beef.", "I eat beef again."),
        ("I hate hens and ducks.", "I no longer like ducks."),
        ("I like hens, ducks and others.", "I no longer like ducks."),
        ("I am vegan but eat honey.", "I started eating meat."),
        ("If it snows, I drink mate and cocoa.", "I no longer drink cocoa."),
        ("I grow figs, salt and pepper, and kale.", "I no longer grow figs."),
        ("I read War and Peace, Emma and Dune.", "I no longer read Dune."),
        ("I own 2 boats, a kite and a car.", "I sold the kite."),
        ("I own a boat, a kite and a car.", "I sold the car and the kite."),
        ('I said "I like hens and geese".', "I no longer like geese."),
        ("I use Vim and Nano, but prefer Vim.", "I no longer use Nano."),
        ("I like hens and geese.", "I don't like geese, but I love hens."),
        ("My brother Tom and Ann live here.", "Ann no longer lives here."),
        ("My brother and I run a bakery.", "My brother no longer runs the bakery."),
        ("Ann and I speak Thai and Lao.", "Ann and I no longer speak Lao."),
        ("I lived in New York and Paris.", "I no longer live in New York."),
        ("I like dogs and hate cats.", "I no longer like dogs."),
        ("I own a kite and I fly it every week.", "I sold the kite."),
        ("I have a hen and love her.", "I no longer have a hen."),
        ("I live in Turin and work at Acme, and I love it.", "I no longer work at Acme."),
        ("I live in Turin and work at Acme.", "I moved to Genoa."),
        ("I own a bike and a car, and my son has a kite.", "I sold the car."),
        ("I am married and adore my husband.", "I got divorced."),
        ("I am married. I adore my husband.", "I got divorced."),
        ("I work at Acme. My boss is Ann.", "I no longer work at Acme."),
        ("My car is a Fiat. It runs well.", "I sold the Fiat."),
        ("I own a boat. The mast is white.", "I sold the boat."),
        ("I own a boat. I sail there.", "I sold the boat."),
        ("I own a boat. I own a kite.", "I sold the boat and the kite."),
        ("I work at Acme as a nurse.", "I left Acme."),
        ("I work at Acme with my sister Eva.", "I no longer work at Acme."),
        ("I'm a nurse at Acme in Graz, looking for a new job.", "I'm no longer at Acme."),
        (
            "My son Leo plays the violin at the Haydn school on Mondays.",
            "Leo doesn't go to the Haydn school any more.",
        ),
        ("I'm a nurse at Acme.", "I'm a teacher now."),
        ("My wife Eva is a doctor.", "I got divorced."),
        ("I live in Graz with my cat.", "I moved to Linz."),
        ("I live in Graz, Eva's town.", "I moved to Linz."),
        ("I have a dog Rex and I live in Graz.", "I moved to Linz."),
        ("I like jazz, blues, soul.", "I no longer like blues."),
        ("I like jazz, blues, soul.", "no longer like blues."),
        ("I swim on Mondays, Fridays.", "I no longer swim on Mondays."),
        ("I own a boat with Ann. I sew.", "I sold the boat."),
        ("I quit smoking and moved to Graz.", "I smoke again."),
        ("User sews.\nUser lives in Graz.", "User likes boats."),
        ("The API and the page are slow.", "Our API runs in Graz."),
        ("Trip to Linz: March 3", "My dog is fifteen."),
        ("I own a boat. Each Sunday in May.", "I sold the boat."),
        ("I own a boat and a car. I sew.", "I sold the boat."),
        ("I met Rosa in May. She is a cook. We dance.", "Rosa is no longer a cook."),
        ("I like:\n- mate\n- cocoa\n- milk", "I no longer like cocoa."),
        ("kasse listens on port 8085, Petra has a dog", "kasse now listens on port 8090"),
        ("kasse listens on port 8085, because 5432 is taken", "kasse now listens on port 8090"),
    ],
)
def test_what_may_be_contradicted_in_part_is_not_written_anew(text: str, newer: str) -> None:
    assert remainder(text, newer) is None


@pytest.mark.parametrize(
    ("text", "request_", "rest"),
    [
        ("I like jazz and blues.", "Forget that I like blues.", "I like jazz."),
        ("Ann: I like jazz and blues.", "Ann: Forget blues, please.", "Ann: I like jazz."),
        ("I am a tailor. I like blues.", "Please forget that I like blues.", "I am a tailor."),
        ("I like jazz and blues.", "Forget that I like jazz and blues.", ""),
        ("I like jazz, blues, soul.", "Forget that I like blues.", None),
        ("I like blues in the evening.", "Forget that I like blues.", ""),
        ("Remember my PIN is 1234.", "Forget my PIN.", ""),
        ("I work at Acme and like blues.", "Forget that I like blues.", None),
        ("My cat is Rex and he is four.", "Forget my cat.", None),
        ("I moved to Graz and I love it.", "Forget that I moved.", None),
    ],
)
def test_a_request_to_forget_a_part_leaves_the_rest(
    memory: AgentMemory, clock: Clock, text: str, request_: str, rest: str | None
) -> None:
    """All of the memory was deleted, jazz too."""
    add(memory, clock, text, request_)
    before = whole(memory)
    ((review_id, remaining),) = before[1]
    assert (before[0][0], remaining) == ({text}, rest)
    if rest is None:
        with pytest.raises(ValidationError, match="only a part"):
            memory.approve(review_id)
        assert whole(memory) == before
        return
    memory.approve(review_id)
    left, edges = state(memory)
    assert left == ({rest} if rest else set())
    assert edges == {edge for edge in before[0][1] if edge[1] in rest}
    memory.undo()
    assert state(memory) == before[0]
    assert [review.remaining for review in memory.reviews()] == [rest]


def test_what_was_to_be_forgotten_is_unknown_after_an_erasure(
    memory: AgentMemory, clock: Clock
) -> None:
    """The reasoning, which named it, was cleared: approving deleted all of the memory."""
    add(memory, clock, "I like jazz and blues.", "Forget that I like blues.")
    add(memory, clock, "I play the viola.", "Forget that I play the viola.")
    memory.erase(memory.store("a secret"))
    assert [(each.reasoning, each.remaining) for each in memory.reviews()] == [
        (None, None),
        (None, ""),
    ]


@pytest.mark.parametrize("in_one", [False, True])
@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("I like newts.", "I don't like newts."),
        ("I like newts.", "I no longer like newts."),
        ("I like newts and hens.", "I no longer like newts."),
        ("I speak Thai and Lao.", "I no longer speak Lao."),
        ("I work at Initech.", "I no longer work at Initech."),
    ],
)
def test_a_relationship_holds_while_its_memory_is_under_review(
    memory: AgentMemory, clock: Clock, first: str, then: str, in_one: bool
) -> None:
    add(memory, clock, first)
    held = state(memory)[1]
    if in_one:
        memory.undo()
        messages = [{"role": "user", "content": text} for text in (first, then)]
        memory.add(messages, user_id="u", graph=True)
        clock.forward(days=1)
    else:
        add(memory, clock, then)
    assert state(memory) == ({first, then}, held)
    (review,) = memory.reviews()
    memory.dismiss(review.review_id)
    assert state(memory) == ({first, then}, held)
    memory.undo()
    memory.approve(review.review_id)
    rest = {review.remaining} if review.remaining else set()
    left = {edge for edge in held if any(edge[1] in text for text in rest)}
    assert state(memory) == ({then, *rest}, left)
    memory.undo()
    assert state(memory) == ({first, then}, held)
    assert [again.content for again in memory.reviews()] == [first]


def homes(memory: AgentMemory, **options: Any) -> set[str]:
    return {edge.target for edge in memory.graph.relationships(**options)}


@pytest.mark.parametrize("run_id", [None, "r"])
def test_what_is_kept_holds_in_the_graph_as_if_it_had_never_ended(
    memory: AgentMemory, clock: Clock, run_id: str | None
) -> None:
    """It was closed by the newer statement, and stayed so when the review was dismissed."""
    moments = []
    for text in ("I live in Rome.", "I moved to Linz."):
        clock.forward(days=1)
        memory.add(text, user_id="u", run_id=run_id, graph=True)
        clock.forward(days=1)
        moments.append(clock.now)

    def seen() -> list[set[str]]:
        now = homes(memory, run_id=run_id)
        return [now, *(homes(memory, run_id=run_id, as_of=when) for when in moments)]

    closed, both = [{"Linz"}, {"Rome"}, {"Linz"}], [{"Rome", "Linz"}, {"Rome"}, {"Rome", "Linz"}]
    assert seen() == closed
    (review,) = memory.reviews()
    for by_number in (False, True, False):
        memory.dismiss(review.review_id)
        clock.forward(days=1)
        assert seen() == both
        memory.undo(review_id=review.review_id if by_number else None)
        assert (seen(), memory.reviews()) == (closed, [review])
    memory.approve(review.review_id)
    assert homes(memory) == {"Linz"}
    clock.forward(days=1)
    memory.undo()
    assert seen() == closed
    memory.decide(dismiss=[memory.reviews()[0].review_id])
    assert seen() == both
    memory.add("I moved to Brno.", user_id="u", run_id=run_id, graph=True)
    clock.forward(days=1)
    # Rome was kept beside Linz: what is said next is held against the latest alone.
    assert [homes(memory), seen()[1:]] == [{"Brno", "Rome"}, both[1:]]
    memory.undo()
    assert seen() == both


@pytest.mark.parametrize("by_number", [True, False])
def test_what_two_memories_state_holds_while_one_of_them_is_kept(
    memory: AgentMemory, clock: Clock, by_number: bool
) -> None:
    add(memory, clock, "I live in Rome.", "I live in Rome with my dog.", "I moved to Linz.")
    first, second = (review.review_id for review in memory.reviews())
    for review_id in (first, second):
        clock.forward(days=1)
        memory.dismiss(review_id)
    memory.undo(review_id=first if by_number else None)
    assert homes(memory) == {"Linz", "Rome"}
    memory.undo(review_id=second if by_number else first)
    assert homes(memory) == {"Linz"}


def test_what_is_kept_holds_once_no_review_of_it_is_open(memory: AgentMemory, clock: Clock) -> None:
    """Rome held, although it was still under review because of Brno."""
    add(memory, clock, "I live in Rome.", "I no longer live in Rome.", "I moved to Brno.")
    of_rome = [each.review_id for each in memory.reviews() if each.content == "I live in Rome."]
    for first, last in (of_rome, reversed(of_rome)):
        for dismissed, held in ((first, {"Brno"}), (last, {"Brno", "Rome"})):
            clock.forward(days=1)
            memory.dismiss(dismissed)
            assert homes(memory) == held
        memory.undo()
        assert homes(memory) == {"Brno"}
        memory.dismiss(last)
        memory.undo(review_id=first)
        memory.undo(review_id=last)
        assert homes(memory) == {"Brno"}
    memory.decide(dismiss=of_rome)
    assert homes(memory) == {"Brno", "Rome"}


@pytest.mark.parametrize(
    ("denial", "before"), [("I no longer like blues.", {"blues"}), ("I hate blues.", set[str]())]
)
def test_what_is_kept_holds_once_the_other_part_is_answered(
    memory: AgentMemory, clock: Clock, denial: str, before: set[str]
) -> None:
    add(memory, clock, "I like jazz and blues.", "I hate jazz.", denial)
    jazz, blues = (review.review_id for review in memory.reviews())

    def liked() -> set[str]:
        clock.forward(days=1)
        edges = memory.graph.relationships()
        return {edge.target for edge in edges if edge.relationship == "likes"}

    memory.dismiss(jazz)
    assert liked() == before
    memory.approve(blues)
    assert liked() == {"jazz"}
    for expected in (before, {"jazz"}):
        memory.undo()
        assert liked() == expected
    memory.undo(review_id=jazz)
    assert liked() == set()
    memory.undo(review_id=blues)
    memory.decide(approve=[blues], dismiss=[jazz])
    assert liked() == {"jazz"}


def test_what_no_memory_under_review_states_ends_at_once(memory: AgentMemory, clock: Clock) -> None:
    memory.graph.add("USER_ID", "likes", "newts", user_id="u")
    add(memory, clock, "I no longer like newts.")
    assert (memory.reviews(), state(memory)[1]) == ([], set())


def test_what_is_to_be_forgotten_of_one_memory_is_asked_about_part_by_part(
    memory: AgentMemory,
) -> None:
    for text in ("I like jazz, blues and soul.", "Forget that I like blues."):
        memory.add(text, user_id="u")
    memory.add("Forget that I like soul.", user_id="u")
    memory.add("Forget that I like soul.", user_id="u")  # it is asked once
    blues, soul = memory.reviews()
    assert (blues.remaining, soul.remaining) == ("I like jazz and soul.", "I like jazz and blues.")
    memory.decide(approve=[blues.review_id, soul.review_id])
    assert [each.content for each in memory.list_recent()] == ["I like jazz."]


@pytest.mark.parametrize(
    "change",
    [
        lambda memory, it: memory.update(it.memory_id, tags=["home"]),
        lambda memory, it: memory.update(it.memory_id, tags=["home"]) and memory.undo(),
        lambda memory, it: memory.store(
            it.content, user_id="u", tags=["home"], on_duplicate="merge"
        ),
        lambda memory, it: memory.archive(it.memory_id) and memory.unarchive(it.memory_id),
        lambda memory, it: memory.archive([it.memory_id, it.replaced_by]) and memory.undo(),
        lambda memory, it: [
            memory.archive(it.memory_id),
            memory.unarchive(it.memory_id),
            memory.undo(),
            memory.undo(),
        ],
        lambda memory, it: [
            memory.delete(it.replaced_by),
            memory.archive(it.memory_id),
            memory.unarchive(it.memory_id),
            memory.undo(memory.history(it.replaced_by)[0].change_id),
        ],
    ],
    ids=["tag", "untag", "merge", "archive", "undo", "undo twice", "delete"],
)
def test_a_review_follows_a_change_that_leaves_the_text(
    memory: AgentMemory, clock: Clock, change: Callable[[AgentMemory, Review], object]
) -> None:
    """After `archive` or `tidy` nobody could approve it, and the outdated text ranked first."""
    add(memory, clock, "I live in Oslo.", "I moved to Bergen.")
    (review,) = memory.reviews()
    change(memory, review)
    (same,) = memory.reviews()
    assert (same.replaced_by, same.reasoning) == (review.replaced_by, review.reasoning)
    assert same.remaining == ""
    assert [(hit.memory.content, hit.under_review) for hit in memory.search("Oslo Bergen")] == [
        ("I moved to Bergen.", False),
        ("I live in Oslo.", True),
    ]
    memory.approve(same.review_id)
    assert [each.content for each in memory.list_recent()] == ["I moved to Bergen."]


@pytest.mark.parametrize("by", ["archive", "tidy"])
def test_the_review_of_an_archived_memory_can_be_decided(
    memory: AgentMemory, clock: Clock, by: str
) -> None:
    add(memory, clock, "I live in Oslo.")
    clock.forward(days=60)
    add(memory, clock, "I moved to Bergen.")
    (review,) = memory.reviews()
    memory.update(review.memory_id, kind="learning")  # else it never ages
    clock.forward(days=100)
    memory.configure(retention="standard")
    archived = memory.tidy().archived if by == "tidy" else memory.archive(review.memory_id)
    assert len(archived) == 1
    (same,) = memory.session({"user_id": "u"}).reviews()
    assert (same.replaced_by, same.remaining) == (review.replaced_by, "")
    assert memory.session({"user_id": "other"}).reviews() == []
    memory.approve(same.review_id)
    assert memory.get(review.memory_id) is None
    memory.undo()
    assert memory.dismiss(memory.reviews()[0].review_id).content == "I live in Oslo."
    memory.undo()
    assert [each.content for each in memory.reviews()] == ["I live in Oslo."]


def test_who_leaves_a_place_may_keep_what_they_are(memory: AgentMemory) -> None:
    for text in ("I'm a nurse at Acme.", "I left Acme."):
        memory.add(text, user_id="u")
    assert [review.remaining for review in memory.reviews()] == [None]
