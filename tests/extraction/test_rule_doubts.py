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
        (
            "I sold the bike.",
            "I bought a bike in May, a red one with two baskets, and ride it to work each day.",
        ),
        (
            "The standup is cancelled.",
            "Our standup is at 9 in room 4 with Ann, Bob, Carl and Dora from the platform team.",
        ),
        ("my boss is marco now", "my boss is ines"),
        ("no, my boss is marco", "my boss is ines"),
        ("my new boss is marco", "my boss is ines"),
        ("my boss is mohammed now", "my boss is ines"),
        ("our db is now mysql", "our db is postgres"),
        ("my dog is called max", "my dog is called rex"),
        ("my favourite band is low", "my favourite band is kino"),
        ("i live in bergen", "i live in oslo"),
        ("My boss is Marco.", "My boss is Ines."),
        ("I don't run on Mondays anymore.", "I run on Mondays."),
        ("I can't run on Mondays.", "I run on Mondays."),
        ("No, I didn't run on Monday.", "I run every Monday."),
        ("I didn't call my mom.", "I called my mom."),
        ("The fix didn't work.", "The fix works."),
        ("I sold the canoe.", "I bought a canoe."),
        ("I left Acme.", "I joined Acme in 2019."),
        ("I lost the watch.", "I own the watch my dad gave me."),
        ("I left Oslo.", "I've worked in Oslo since 2019."),
        ("I don't need insulin any more.", "I need insulin."),
        ("I gave up insulin.", "I need insulin."),
        ("I don't have asthma anymore.", "I was diagnosed with asthma."),
        ("I met Ann in Rome, not in Oslo.", "I met Ann in Oslo."),
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
        ("my boss is angry", "my boss is ines"),
        ("my boss is ines", "my boss is angry"),
        ("My boss is Ines.", "my boss is angry"),
        ("my boss is fuming now", "my boss is ines"),
        ("my wife is pregnant", "my wife is anna"),
        ("my wife is pregnant again", "my wife is anna"),
        ("my sister is pregnant now", "my sister is vegan"),
        ("our db is slow", "our db is postgres"),
        ("my dog is limping", "my dog is rex"),
        ("my brother is hyper", "my brother is dan"),
        ("I can't run this Monday.", "I run on Mondays."),
        ("we don't meet this friday", "we meet fridays"),
        ("I didn't run on Monday.", "I run every Monday."),
        ("I can't run on Monday.", "I run on Mondays."),
        ("I didn't swim this morning.", "I swim every morning."),
        ("I sold the bike.", "I paid 900 for the bike."),
        ("The shed is gone.", "I built the shed in 2019."),
        ("I left Oslo.", "I grew up in Oslo."),
        ("I left MIT.", "I studied at MIT."),
        ("i left acme", "i met my wife at acme"),
        ("I sold the Fiat.", "My first car was a Fiat."),
        ("I lost the watch.", "My dad gave me his watch."),
        ("We moved from Jenkins to Argo.", "In 2020 we used Jenkins."),
        ("I quit smoking.", "I used to smoke."),
    ],
)
def test_what_may_both_be_true_is_no_question(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ADD", None)]


def test_how_a_favourite_is_names_no_other() -> None:
    known = ("My favourite food is sushi.",)
    assert outcomes(decided("My favourite food is expensive.", known=known)) == [("ADD", None)]
    assert outcomes(decided("My favourite food is pizza.", known=known)) == [("ASK", "m0")]
