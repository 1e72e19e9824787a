"""What ``add`` keeps as a core memory: what somebody tells of themselves that lasts, and rules."""

from __future__ import annotations

import pytest
from conftest import Clock

from agent_memory import AgentMemory
from agent_memory.extraction.rules.lasting import lasts

LASTING = """\
I'm allergic to peanuts.
My blood type is 0 negative.
My passport expires in October 2029.
I prefer short answers without bullet points.
I was born in Tromso.
My brother Jonas lives in Madrid.
My daughter Mia is afraid of dogs.
I take 20 mg of cetirizine every morning.
I never fly on Sundays.
I can't stand coriander.
I met Clara in Krakow in 2008.
My grandfather built the cabin in Geilo.
I cancelled Ironworks and joined FitHub instead.
We sold the Skoda and bought a Volvo.
Wendell left, so my boss is Priya now.
I changed dentists: it's Dr. Okafor now, not Dr. Hansen.
I quit smoking.
Alice: I work night shifts.
Always answer in German.
Use metric units.
User is allergic to nuts
Ich bin Vegetarierin.
Meine Tochter heißt Lena.
J'habite à Lyon.
Tengo dos hijos.
im lactose intolerant
I also give piano lessons.
I repair violins for a living.
We run everything on Debian.
Decision: we go with SQLite instead of Postgres.
I've been a welder for twenty years.
My grandmother raised me.
My ex-wife lives in Denver.
My wife and I run a kennel.
My car is an old Volvo.
My blood pressure is chronically high.
My birthday is May 5.
I'm scared of flying.
Mi hermana vive en Lima.
Ich esse jeden Morgen Obst.
Ich wohne hier in Graz.
Trabajo por la mañana.
J'ai deux enfants.
""".splitlines()
PASSING = """\
I had lunch with Ann at Rome today and we talked about pottery.
I spent 40 euros on books yesterday.
I'm flying to Rome on May 3.
I need to return the book to Tom.
I'm tired.
My train is late.
My class in Cork starts in week 49.
I have a meeting at 5.
I think it works.
I love it.
I booked a table at Luigi's for May 3.
My build fails.
I'd like to see a doctor.
Do I live in Oslo?
The talk in Rome has been called off.
Ann said that glaciers melt.
Ich gehe heute ins Kino.
Je suis en retard.
I open the file and get an error.
I run the script and it prints nothing.
I press the button and the lamp stays off.
I keep getting a timeout.
I always get an error.
I haven't slept.
I have three tabs open.
I have ten minutes left.
I have a sore throat.
I'm still sad about it.
I'm between two meetings.
My battery is at 5 %.
My battery is low.
My head is spinning.
My printer jams after two pages.
My wife is at the dentist.
My son is asleep.
My flight is on Friday.
Our meeting is at 5.
Mein Akku ist leer.
Mein Zug ist verspätet.
Ich bin müde.
Ich öffne die Datei und bekomme einen Fehler.
Mon train est en retard.
Ich habe Python gelernt.
Ich leite das weiter.
Ich hasse diesen Fehler.
J'ai 3 erreurs.
Tengo un error en el código.
""".splitlines()


@pytest.mark.parametrize("text", LASTING)
def test_what_somebody_is_has_or_wants_lasts(text: str) -> None:
    assert lasts(text)


@pytest.mark.parametrize("text", PASSING)
def test_what_happened_or_is_so_for_now_does_not_last(text: str) -> None:
    assert not lasts(text)


def test_lasting_facts_outlive_a_year_with_retention(memory: AgentMemory, clock: Clock) -> None:
    memory.configure(retention="standard")
    for text in ("I'm allergic to peanuts.", "I had lunch with Ann at Luigi's today."):
        memory.add(text, user_id="sam")
        clock.forward(days=1)
    memory.add([{"role": "assistant", "content": "I booked Hotel Josef, May 3."}], user_id="sam")
    clock.forward(days=365)
    memory.tidy()
    assert [(kept.kind, kept.content) for kept in memory.get_all(user_id="sam")] == [
        ("core", "I'm allergic to peanuts.")
    ]


def test_the_correction_of_a_core_memory_is_one_too(memory: AgentMemory) -> None:
    memory.add("My daughter Mia goes to Elm Street School.", user_id="sam")
    memory.add("Mia doesn't go to Elm Street School anymore.", user_id="sam")
    assert memory.reviews()
    assert {(kept.kind, kept.content) for kept in memory.get_all(user_id="sam")} == {
        ("core", "My daughter Mia goes to Elm Street School."),
        ("core", "Mia doesn't go to Elm Street School anymore."),
    }


def test_what_exceeds_the_limit_of_core_memories_is_kept_as_a_learning(
    memory: AgentMemory, clock: Clock
) -> None:
    limit = {"max_memories": 1, "enforcement": "hard"}
    memory.configure(retention={"limits": {"core": limit}})
    assert memory.add("My cat is called Tom. I speak French.", user_id="sam").success
    clock.forward(minutes=1)
    assert memory.add("I play the cello.", user_id="sam").success
    kinds = [kept.kind for kept in memory.get_all(user_id="sam")]
    assert sorted(kinds) == ["core", *["learning"] * (len(kinds) - 1)]
    assert len(kinds) > 1


def test_a_correction_is_not_archived_before_what_it_corrects(
    memory: AgentMemory, clock: Clock
) -> None:
    memory.configure(retention="standard")
    memory.add("Anna's birthday is May 5.", user_id="sam")
    clock.forward(days=10)
    memory.add("Anna's birthday is May 6.", user_id="sam")
    (review,) = memory.reviews()
    assert {kept.kind for kept in memory.get_all(user_id="sam")} == {"learning"}
    memory.promote(review.memory_id)
    clock.forward(days=100)
    assert memory.tidy().archived == []
    memory.demote(review.memory_id)
    assert [item.memory_id for item in memory.tidy().archived] == [review.memory_id]
    assert [item.memory_id for item in memory.tidy().archived] == [review.replaced_by]
