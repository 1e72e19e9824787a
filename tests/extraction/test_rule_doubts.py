"""What the rules leave for somebody to decide, as both may be true."""

from __future__ import annotations

import pytest
from decision_cases import decided, outcomes


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("My step count today is 9000 now.", "My step count today is 5000."),
        ("My budget for this month is now $600.", "My budget for this month is $500."),
        ("My daughter is 7 years old now.", "My daughter is 4 years old."),
        ("The launch is on 2026-06-05.", "The launch is on 2026-05-06."),
        ("The party is on 06/05/2026.", "The party is on 05/06/2026."),
        ("The party is next Friday.", "The party is on Friday."),
        ("Ticket 42 was closed on Friday.", "Ticket 42 is open."),
        ("The shop is closed for good.", "The shop is open."),
        ("The demo is on Thursday, not on Friday.", "The demo for Ann is on Friday."),
        ("Dr. Roth put me on biotin 1000 mg.", "I take biotin 500 mg twice a day."),
        ("My doctor raised the biotin to 40 mg.", "I take 20 mg of biotin."),
        ("They put the rent up to 950 euros.", "My rent is 900 euros."),
        ("We are on Node 20 now.", "We use Node 18."),
        ("I changed the dev server port to 4000.", "My dev server runs on port 3000."),
        ("We upgraded the dev server to 16 GB.", "The dev server has 8 GB of RAM."),
        ("The dog weighs 14 kg now.", "My dog weighs 12 kg."),
        ("He can't come on Wednesday, Friday instead.", "The technician comes on Wednesday."),
        ("I have a new number, 555-9876.", "My number is 555-1234."),
        ("I quit smoking in January.", "I smoke a pack a day."),
        (
            "I sold the bike.",
            "I bought a bike in May, a red one with two baskets, and ride it to work each day.",
        ),
        (
            "The standup is cancelled.",
            "Our standup is at 9 in room 4 with Ann, Bob, Carl and Dora from the platform team.",
        ),
        (
            "I don't have eczema any more.",
            "I have asthma, eczema, hay fever and migraines from time to time.",
        ),
    ],
)
def test_what_may_be_of_another_day_or_thing_is_asked_about(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ASK", "m0")]


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("My wife takes biotin 200 mg now.", "I take biotin 500 mg."),
        ("I now take zinc 400 mg twice a day.", "I take biotin 500 mg twice a day."),
        ("I also take 50 mg of zinc now.", "I take 10 mg of biotin."),
        ("The web server now runs on port 8080.", "The dev server runs on port 3000."),
        ("The dev server now has 100 GB of disk.", "The dev server has 8 GB of RAM."),
        ("The kitchen fan now uses 60 watts.", "The kitchen light uses 40 watts."),
        ("The train to Linz now leaves at 9 am.", "The train to Graz leaves at 8 am."),
        ("We use Python 3.12 in the worker now.", "We use Python 3.10 in the API."),
        ("They are on Node 20 now.", "We use Node 18."),
        ("He can't come on Wednesday, Friday instead.", "My yoga class is on Wednesday."),
        ("The kids now have chess on Thursday.", "The kids have swimming on Monday."),
        ("I now run 5 km in Graz.", "In 2020 I ran 10 km in Graz."),
        ("The restore takes 40 minutes now.", "The backup takes 20 minutes."),
        ("My father quit smoking in January.", "I smoke a pipe."),
        ("My job is stressful.", "My job is nursing."),
    ],
)
def test_what_is_of_another_person_or_thing_is_no_question(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ADD", None)]


def test_how_a_favourite_is_names_no_other() -> None:
    known = ("My favourite food is sushi.",)
    assert outcomes(decided("My favourite food is expensive.", known=known)) == [("ADD", None)]
    assert outcomes(decided("My favourite food is pizza.", known=known)) == [("ASK", "m0")]
