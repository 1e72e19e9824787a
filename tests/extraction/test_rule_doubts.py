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
        ("I moved to Bergen yesterday.", "I live in Oslo."),
        ("I moved to Bergen today.", "I moved to Oslo yesterday."),
        ("I moved to Bergen two weeks ago for work.", "I live in Oslo."),
        ("I moved to Bergen over the weekend.", "I live in Oslo."),
        ("We moved to Bergen this month.", "I live in Oslo."),
        ("I moved to Bergen in 2025.", "I live in Oslo."),
        ("I moved from Oslo to Bergen in 2019.", "I live in Oslo."),
        ("i moved to bergen 2 weeks ago", "i live in oslo"),
        ("I turned 35 yesterday.", "I'm 34."),
        ("I started at Beta today.", "I work at Acme."),
        ("I joined Beta in 2025.", "I work at Acme."),
        ("My manager is Marco since this week.", "My manager is Dana."),
        ("As of today my manager is Marco.", "My manager is Dana."),
        ("My manager is Dana now.", "My manager is Marco this week."),
        ("The API port is 9000 as of today.", "The API port is 8000."),
        ("The API runs on port 9000 since yesterday.", "The API runs on port 8000."),
        ("I switched to Emacs two weeks ago.", "I use Vim."),
        ("I quit smoking yesterday.", "I smoke."),
        ("I quit smoking in January.", "I smoke a pack a day."),
        ("I stopped smoking last week.", "I smoke."),
        ("i quit smoking 3 weeks ago, using patches", "i smoke about a pack a day"),
        ("I sold my car a month ago.", "I have a car."),
        ("I sold my car over the weekend.", "I have a car."),
        ("I left Acme two weeks ago.", "I work at Acme."),
        ("i left acme yesterday", "i work at acme"),
        ("I gave up chess a year ago.", "I play chess."),
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
        ("I work from the office today.", "I work from home."),
        ("I'm working at Beta today.", "I work at Acme."),
        ("I work at Acme.", "I'm working at Beta today."),
        ("My manager is Marco this week.", "My manager is Dana."),
        ("My manager is Dana.", "My manager is Marco this week."),
        ("My lunch is Soup today.", "My lunch is Pizza."),
        ("I moved to Bergen for the summer.", "I live in Oslo."),
        ("I moved to Bergen in 2019 and came back.", "I live in Oslo."),
        ("Ann moved to Bergen yesterday.", "I live in Oslo."),
        ("I turned 35 in 2019.", "I'm 41."),
        ("I started at 7 today.", "I work at Acme."),
        ("I joined Ann for lunch today.", "I work at Acme."),
        ("I joined a gym yesterday.", "I work at Acme."),
        ("I started a diet. I'm working at Beta today.", "I work at Acme."),
        ("I sold my bike today.", "I have a car."),
        ("I sold my car two weeks ago.", "I met Ann two weeks ago."),
        ("I nearly sold my car.", "I have a car."),
        ("I stopped for coffee.", "I drink coffee."),
        ("My father quit smoking in January.", "I smoke a pipe."),
        ("I left the office at 5 today.", "I like the office."),
    ],
)
def test_what_may_both_be_true_is_no_question(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ADD", None)]


def test_how_a_favourite_is_names_no_other() -> None:
    known = ("My favourite food is sushi.",)
    assert outcomes(decided("My favourite food is expensive.", known=known)) == [("ADD", None)]
    assert outcomes(decided("My favourite food is pizza.", known=known)) == [("ASK", "m0")]
