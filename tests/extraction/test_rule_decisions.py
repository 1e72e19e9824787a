"""Decisions without a model: few, and sound."""

from __future__ import annotations

import pytest
from decision_cases import decided, outcomes

from agent_memory.api.conversations import MIN_CONFIDENCE
from agent_memory.extraction.decisions import decide
from agent_memory.extraction.types import Fact


@pytest.mark.parametrize(
    ("fact", "known", "event"),
    [
        ("I love pasta", "I love pasta.", "NONE"),
        ("I really love pasta", "I love pasta", "NONE"),
        ("I like pasta", "I like pasta and pizza", "ADD"),
        ("I like pasta", "I love pasta", "ADD"),
        ("I enjoy pasta", "I like pasta", "ADD"),
        ("I live in Paris", "I have lived long. I live in Paris", "ADD"),
        ("I now live in Paris", "I live in Paris.", "NONE"),
        ("My favourite colour is green", "My favorite color is blue", "UPDATE"),
        ("I moved to Lisbon last week", "I live in Paris", "ASK"),
        ("Ann: I moved to Lisbon", "Ann: I live in Paris", "ASK"),
        ("User lives in Lisbon", "I live in Paris", "ASK"),
        ("I like pasta and pizza", "I like pasta.", "ADD"),
        ("I love pasta", "I like pasta", "UPDATE"),
        ("I adore pasta", "I enjoy pasta.", "UPDATE"),
        ("Ann: I love pasta", "Ann: I like pasta", "UPDATE"),
        ("The deadline is now Friday", "The deadline is Monday", "UPDATE"),
        ("Ann: I moved to Lisbon", "Bob: I live in Paris", "ADD"),
        ("My favourite food is pasta", "My favourite colour is blue", "ADD"),
        ("The server is down", "The server is up", "ASK"),
        ("I like pasta but only cold", "I like pasta", "ADD"),
        ("I do not like pasta", "I like pasta", "ASK"),
        ("I like tea", "I like coffee", "ADD"),
        ("I used to live in Rome", "I live in Paris", "ADD"),
        ("I have 3 cats", "I have 2 cats", "ASK"),
        ("Bob: I like pasta and pizza", "Ann: I like pasta", "ADD"),
        ("我住在上海", "我住在北京", "ASK"),
        ("I moved from Paris to Lisbon", "I live in Paris", "UPDATE"),
        ("I live in Lisbon, not Paris", "I live in Paris", "UPDATE"),
        ("My birthday is on May 5", "My birthday is May 4", "ASK"),
        ("No, my birthday is on May 5", "My birthday is May 4", "UPDATE"),
        ("My height is 181 cm", "My height is 180 cm", "ASK"),
        ("My date of birth is May 5, 1990", "My date of birth is May 6, 1990", "ASK"),
        ("I like tea at night", "I like tea", "ADD"),
        ("I like tea", "I like tea at night", "ADD"),
        ("My budget is tight", "My budget is 500 euros", "ADD"),
        ("I live in a shared flat", "I live in Paris", "ADD"),
        ("Ann left Paris in 2010", "I live in Paris", "ADD"),
        ("Ann left Paris in 2010", "Ann lives in Paris", "ASK"),
        ("Ann sold the bike", "I own the bike", "ADD"),
        ("User left Paris", "I live in Paris", "ASK"),
        ("Recently left Paris", "I live in Paris", "ASK"),
        ("We moved from Jenkins to Argo", "I live in Paris", "ADD"),
    ],
)
def test_a_fact_beside_a_memory(fact: str, known: str, event: str) -> None:
    plan = decided(fact, known=("I own a bike", known))
    (operation,) = plan.operations
    assert outcomes(plan) == [(event, None if event == "ADD" else "m1")]
    assert operation.text == (known if event == "NONE" else fact)
    assert operation.old_memory == (known if event in ("UPDATE", "ASK") else None)
    assert operation.reasoning


def test_another_value_for_a_memory_that_says_more_is_for_review() -> None:
    (operation,) = decided(
        "I moved to Lisbon", known=("I live in Paris with my wife Eve",)
    ).operations
    assert (operation.event, operation.id) == ("UPDATE", "m0")
    assert operation.confidence is not None
    assert operation.confidence < MIN_CONFIDENCE


def test_a_memory_is_taken_away_only_on_request_and_only_for_review() -> None:
    found = decided("Forget my phone number", known=("I own a bike", "My phone number is 555"))
    assert outcomes(found) == [("DELETE", "m1")]
    assert (found.operations[0].confidence or 1) < MIN_CONFIDENCE


def test_what_holds_no_longer_is_added_and_the_memory_is_for_review() -> None:
    found = decided("I no longer eat meat", known=("I eat meat every day", "I own a bike"))
    assert outcomes(found) == [("ASK", "m0")]
    assert found.operations[0].text == "I no longer eat meat"
    assert (found.operations[0].confidence or 1) < MIN_CONFIDENCE
    assert found.covers == [(0,)]


@pytest.mark.parametrize("order", ["Forget everything", "Delete all memories", "Forget my shoes"])
def test_an_order_takes_away_nothing_that_it_does_not_name(order: str) -> None:
    known = ("I own a bike", "My phone number is 555", "I love all memories of Rome")
    assert [event for event, _ in outcomes(decided(order, known=known[:2]))] == ["NONE"]


@pytest.mark.parametrize(
    ("order", "known"),
    [
        ("Vergiss, dass ich Polnisch spreche.", "Ich spreche Polnisch."),
        ("Vergessen Sie, dass ich in Graz wohne.", "Ich wohne in Graz."),
        ("Oublie que je parle polonais.", "Je parle polonais."),
        ("Oubliez que j'habite à Lyon.", "J'habite à Lyon."),
        ("Por favor, olvida que vivo en Lugo.", "Vivo en Lugo."),
        ("忘了我会说波兰语。", "我会说波兰语。"),
    ],
)
def test_what_is_to_be_forgotten_is_asked_about_in_other_languages(order: str, known: str) -> None:
    assert outcomes(decided(order, known=(known,))) == [("DELETE", "m0")]


@pytest.mark.parametrize(
    "text", ["Olvida que soy su hijo.", "Oublie que je suis là.", "忘了我会来。"]
)
def test_what_may_tell_that_somebody_forgets_is_kept_if_nothing_is_like_it(text: str) -> None:
    known = ("Mi madre tiene demencia.", "Je parle polonais.")
    assert outcomes(decided(text, known=known)) == [("ADD", None)]


def test_nobody_has_what_another_said_forgotten() -> None:
    known = ("Ann: My phone number is 555",)
    assert outcomes(decided("Bob: Forget my phone number", known=known)) == [("NONE", None)]
    assert outcomes(decided("Ann: Forget my phone number", known=known)) == [("DELETE", "m0")]


def test_of_two_values_the_last_takes_the_memorys_place() -> None:
    facts = ("My birthday is May 5", "Sorry, my birthday is May 6")
    found = decided(*facts, known=("My birthday is May 4",))
    assert outcomes(found) == [("ADD", None), ("UPDATE", "m0"), ("ASK", found.new_ids[0])]
    assert found.operations[1].text == facts[1]


def test_a_memory_is_touched_once() -> None:
    facts = ("I love pasta", "I adore pasta", "Forget that I like pasta")
    found = decided(*facts, known=("I like pasta",))
    touched = [it.id for it in found.operations if it.event in ("UPDATE", "DELETE")]
    assert touched == ["m0"]
    assert {place for one in found.covers for place in one} == {0, 1, 2}


def test_it_says_that_rules_decided() -> None:
    found = decide([Fact("I love pasta", (0,), 0.7)], [[]], None)
    assert (found.by, found.metadata.model_used) == ("rules", "rules")
    assert not found.metadata.uuid_mapping_used
    assert found.operations[0].confidence == 0.7


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("No me gusta el té.", "Me gusta el café."),
        ("No fumo en casa.", "Mi padre fuma en casa."),
        ("No sugar in my coffee.", "I drink coffee with milk."),
    ],
)
def test_a_sentence_that_begins_with_no_corrects_nothing(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ADD", None)]


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("No me gusta el té.", "Me gusta el té."),
        ("No dogs are allowed in the flat.", "Dogs are allowed in the flat."),
        ("Dogs are allowed in the flat.", "No dogs are allowed in the flat."),
        ("No meat for me anymore.", "I eat meat."),
        ("No vivo en Madrid.", "Vivo en Madrid."),
        ("Ya no vivo en Madrid.", "Vivo en Madrid."),
    ],
)
def test_a_sentence_that_begins_with_no_denies_what_it_says(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ASK", "m0")]


@pytest.mark.parametrize("answer", ["No, it's on Saturday", "No it's on Saturday", "No - Saturday"])
def test_an_answer_that_begins_with_no_corrects(answer: str) -> None:
    found = decided(f"{answer}, the flight.", known=("The flight is on Friday.",))
    assert outcomes(found) == [("ASK", "m0")]


def test_pages_are_no_age() -> None:
    known = ("I turned 34.",)
    assert outcomes(decided("I turned 40 pages of the report.", known=known)) == [("ADD", None)]
    assert outcomes(decided("I turned 35.", known=known)) == [("UPDATE", "m0")]


@pytest.mark.parametrize(
    ("longer", "shorter"),
    [
        ("I eat fish and chips on Fridays.", "I eat fish."),
        ("I work with Ann and Tom on Mondays.", "I work with Ann."),
        ("I like salt and vinegar chips.", "I like salt."),
        ("We deploy on Mondays and Tuesday nights.", "We deploy on Mondays."),
        ("I love Ben and Jerry's.", "I love Ben."),
        ("I met Ann and left.", "I met Ann."),
        ("I eat fish and chips.", "I eat fish."),
        ("I never eat fish and chips.", "I never eat fish."),
        ("I like pasta and pizza.", "I like pasta."),
    ],
)
def test_what_a_longer_text_says_with_more_words_is_not_what_a_shorter_says(
    longer: str, shorter: str
) -> None:
    assert outcomes(decided(longer, known=(shorter,))) == [("ADD", None)]
    assert outcomes(decided(shorter, known=(longer,))) == [("ADD", None)]


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("The phone number is 030 1234567.", "My phone number is 0171 2345678."),
        ("The height is 75 cm.", "My height is 180 cm."),
        ("Our postcode is 20095.", "My postcode is 10115."),
        ("We are 12 now.", "I am 34."),
        ("We're 5.", "I'm 34 years old."),
        ("My email is ann@work.example", "My email is ann@home.example"),
        ("My budget is 300 euros for the new phone.", "My budget is 5000 euros."),
        ("The meeting is at 15:00 for the new hires.", "The meeting is at 10:00."),
        ("My new car is blue.", "My car is red."),
        ("My birthday is May 6.", "My birthday is May 4, 1990."),
        ("The deadline is now Friday.", "The deadline is Friday at 5pm."),
        ("The deadline is now May 14.", "The deadline is Monday."),
        ("Deadline: March 5", "Deadline: March 3"),
        ("Deadline: March 5", "The deadline is March 3."),
        ("The port is 9090.", "Port: 8080"),
        ("Age: 43", "I am 41."),
        ("I live in Rome, not Oslo, is it late there?", "I live in Oslo."),
    ],
)
def test_what_may_be_of_something_else_or_say_less_is_asked_about(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ASK", "m0")]


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("I moved to Lisbon last March.", "I live in Lisbon."),
        ("I moved from Rome to Lisbon.", "I live in Lisbon."),
        ("I joined Acme in 2019.", "I work at Acme."),
        ("Me mudé a Madrid el año pasado.", "Vivo en Madrid."),
        ("Our budget is 500 euros.", "My budget is 500 euros."),
    ],
)
def test_what_says_since_when_or_of_another_is_not_known_already(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ADD", None)]


@pytest.mark.parametrize(
    ("known", "fact"),
    [
        ("May 5", "May 5, 1990"),
        ("May 5", "5 May"),
        ("May 5", "the 5th of May"),
        ("Jan 5", "January 5th, 1990"),
        ("in May", "May 5"),
    ],
)
def test_a_birthday_told_in_full_takes_the_place_of_the_same(known: str, fact: str) -> None:
    decisions = decided(f"My birthday is {fact}.", known=(f"My birthday is {known}.",))
    assert outcomes(decisions) == [("UPDATE", "m0")]


@pytest.mark.parametrize(
    ("known", "fact", "outcome"),
    [
        ("My birthday is May 5.", "My birthday is May 15, 1990.", ("ASK", "m0")),
        ("My birthday is May 5.", "My birthday is March 5, 1990.", ("ASK", "m0")),
        ("My birthday is May 5, 1990.", "My birthday is May 5, 1991.", ("ASK", "m0")),
        ("My birthday is 05/06.", "My birthday is 06/05.", ("ASK", "m0")),
        ("My birthday is May 5 and I hate cake.", "My birthday is May 5, 1990.", ("ADD", None)),
        ("My birthday is May 5.", "My birthday is May 5, 1990, I think.", ("ADD", None)),
        ("My birthday is May 5.", "Our birthday is May 5, 1990.", ("ADD", None)),
        ("My birthday is May 5.", "My son's birthday is May 5, 2015.", ("ADD", None)),
        ("Mia's birthday is May 5.", "Mia's birthday is May 5, 2015.", ("ADD", None)),
        ("My flight is on May 5.", "My flight is on May 5 at 7.", ("ADD", None)),
        ("The deadline is May 5.", "The deadline is the 5th of May.", ("ADD", None)),
        ("The deadline is this Friday.", "The deadline is next Friday.", ("ASK", "m0")),
        ("The deadline is June 5.", "The deadline is July 5.", ("ASK", "m0")),
    ],
)
def test_another_date_or_one_beside_others_takes_no_place(
    known: str, fact: str, outcome: tuple[str, str | None]
) -> None:
    assert outcomes(decided(fact, known=(known,))) == [outcome]


def test_a_date_that_tells_as_much_takes_the_place_of_another() -> None:
    for fact in ("No, my birthday is May 5.", "No, my birthday is May 5, 1990."):
        assert outcomes(decided(fact, known=("My birthday is May 4.",))) == [("UPDATE", "m0")]


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("My email is b@x.example, not a@x.example.", "My email is a@x.example."),
        ("The standup is at 9:30, not 9:00.", "The standup is at 9:00."),
        ("The price is 4.50 euros, not 4.20 euros.", "The price is 4.20 euros."),
    ],
)
def test_a_value_with_a_point_in_it_is_named_as_gone(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("UPDATE", "m0")]


def test_the_current_one_takes_the_place_of_what_was_said_before() -> None:
    for fact in ("My current budget is 600 euros.", "My budget is now 600 euros."):
        assert outcomes(decided(fact, known=("My budget is 500 euros.",))) == [("UPDATE", "m0")]


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("I moved from Berlin to Lisbon.", "My name is Ann and I live in Berlin."),
        ("My birthday is May 5.", "I have two sisters and my birthday is May 4."),
        ("My birthday is May 5.", "I like cake; my birthday is May 4."),
    ],
)
def test_a_memory_that_says_something_else_first_is_not_replaced(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ASK", "m0")]


@pytest.mark.parametrize(
    ("fact", "known", "event"),
    [
        ("I live in St. Paul.", "I live in St. Louis.", "ASK"),
        ("My doctor is Dr. Lange now.", "My doctor is Dr. Weiss.", "ASK"),
        ("I live in St. Paul.", "I now live in St. Paul.", "NONE"),
    ],
)
def test_a_value_goes_on_behind_the_stop_of_an_abbreviation(
    fact: str, known: str, event: str
) -> None:
    assert outcomes(decided(fact, known=(known,))) == [(event, "m0")]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I live in Berlin.", "I moved to Lisbon."),
        ("I like tea.", "I don't like tea."),
        ("The deadline is Monday.", "The deadline is now Friday."),
        ("My phone number is 555 1234567.", "Forget my phone number."),
    ],
)
def test_what_one_conversation_says_twice_is_asked_about_too(first: str, second: str) -> None:
    between = [f"Book {n} is on shelf {n}." for n in range(60)]
    found = decided(first, *between, second)
    assert outcomes(found)[-1] == ("ASK" if second[0] != "F" else "DELETE", found.new_ids[0])
    assert {event for event, _ in outcomes(found)[:-1]} == {"ADD"}


@pytest.mark.parametrize(
    ("fact", "known", "event"),
    [
        ("Ich mag keinen Tee.", "Ich mag Tee.", "ASK"),
        ("Ich mag Tee nicht mehr.", "Ich mag Tee.", "ASK"),
        ("Ich wohne nicht in Berlin.", "Ich wohne in Berlin.", "ASK"),
        ("Je n'aime pas le thé.", "J'aime le thé.", "ASK"),
        ("Je ne bois plus d'alcool.", "Je bois de l'alcool.", "ASK"),
        ("Nunca como carne.", "Como carne.", "ASK"),
        ("Yo no fumo.", "Yo fumo.", "ASK"),
        ("Jag dricker inte kaffe.", "Jag dricker kaffe.", "ASK"),
        ("I have no car.", "I have a car.", "ASK"),
        ("Ich mag keinen Kaffee.", "Ich mag Tee.", "ADD"),
        ("Mon frère n'aime pas le thé.", "J'aime le thé.", "ADD"),
        ("Meine Frau isst kein Fleisch.", "Ich esse Fleisch.", "ADD"),
        ("Ich bin nicht mehr allergisch.", "Mein Sohn ist allergisch.", "ADD"),
        ("Je ne fume plus.", "Mon frère fume.", "ADD"),
        ("Ya no fumo.", "Mi hermana dice: fumo.", "ADD"),
        ("Ich wohne nicht gern in Berlin.", "Ich wohne in Berlin.", "ADD"),
    ],
)
def test_what_is_denied_in_other_languages_is_asked_about(
    fact: str, known: str, event: str
) -> None:
    assert outcomes(decided(fact, known=(known,))) == [(event, None if event == "ADD" else "m0")]


def test_one_may_be_several_things() -> None:
    for fact in ("I'm a single mother.", "I'm a big fan of jazz."):
        assert outcomes(decided(fact, known=("I'm a nurse.",))) == [("ADD", None)]
    assert outcomes(decided("I'm a teacher now.", known=("I'm a nurse.",))) == [("ASK", "m0")]


def test_another_street_and_number_is_asked_about() -> None:
    known = "My address is 12 Oak Street, Springfield."
    for fact in ("We moved, my new address is 7 Elm Street, Rome.", "My address is 7 Elm St."):
        assert outcomes(decided(fact, known=(known,))) == [("ASK", "m0")]


def test_what_is_postponed_to_another_day_is_on_that_day() -> None:
    fact = "The launch is postponed to Thursday."
    for known in ("The launch is on Monday.", "The launch starts on Monday."):
        assert outcomes(decided(fact, known=(known,))) == [("UPDATE", "m0")]


def test_a_host_with_a_number_takes_the_place_of_one_without() -> None:
    fact, known = "Our mail server is now mx2.kern.example", "Our mail server is mx.kern.example"
    assert outcomes(decided(fact, known=(known,))) == [("UPDATE", "m0")]


@pytest.mark.parametrize(
    ("fact", "known", "event"),
    [
        ("I left Google in May.", "I work at Google as an engineer.", "ASK"),
        ("Rex died last week.", "I have a dog named Rex.", "ASK"),
        ("I left my keys in the office.", "I work at Google.", "ADD"),
        ("I left Ann in charge this week.", "Ann likes tea.", "ADD"),
    ],
)
def test_whom_one_left_and_who_died_is_asked_about(fact: str, known: str, event: str) -> None:
    assert outcomes(decided(fact, known=(known,)))[0][0] == event


@pytest.mark.parametrize("fact", ["I never gave up chess.", "I won't quit chess."])
def test_what_is_not_given_up_is_not_asked_about(fact: str) -> None:
    assert outcomes(decided(fact, known=("I love chess and my dog.",))) == [("ADD", None)]
    gave_up = decided("I gave up chess.", known=("I love chess and my dog.",))
    assert outcomes(gave_up) == [("ASK", "m0")]


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("I moved from Paris to Lisbon and back.", "I live in Paris."),
        ("I moved from Paris to Lisbon as a girl.", "I live in Paris."),
        ("I think the deadline is now Friday.", "The deadline is Monday."),
        ("The deadline is now Friday, I guess.", "The deadline is Monday."),
        ("The port is 8443 instead of 8080 on staging.", "The port is 8080."),
        ("The deadline is Monday rather than Friday for Bob.", "The deadline is Friday."),
    ],
)
def test_what_may_be_over_or_is_guessed_replaces_nothing(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ASK", "m0")]


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("The flight is at 11:00 instead of 9:00.", "The flight is at 9:00."),
        ("The price is 5 euros rather than 4.50 euros.", "The price is 4.50 euros."),
        ("The meeting is on Tuesday, not on Monday.", "The meeting is on Monday."),
        (
            "I changed dentists: it's Dr. Okafor now, not Dr. Hansen.",
            "My dentist is Dr. Hansen.",
        ),
        ("I changed my number, it's 555-0177 now.", "My phone number is 555-0134."),
        ("My number changed last week, it's 555-0177.", "My phone number is 555-0134."),
        ("I changed my email address to ann@b.example.", "My email is ann@a.example."),
    ],
)
def test_what_a_value_is_instead_of_is_gone(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("UPDATE", "m0")]


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("I live in Oslo.", "I moved to Oslo, then to Rome."),
        ("I live in Oslo.", "I moved to Oslo as a student."),
        ("I live in Oslo.", "I live in Oslo. At least I did in May."),
        ("I live in Oslo.", "I think I live in Oslo."),
        ("I work at Acme.", "I joined Acme in 2019 and left in 2021."),
        ("The meeting is on Monday.", "The meeting is on Monday this week."),
    ],
)
def test_what_was_so_once_or_for_a_while_does_not_say_that_it_is_so(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ADD", None)]


def test_what_two_people_did_both_did() -> None:
    assert outcomes(decided("Bob joined Acme.", known=("Ann joined Acme.",))) == [("ADD", None)]
    known = ("Tom handles the billing.",)
    assert outcomes(decided("Rita handles the billing now.", known=known)) == [("ASK", "m0")]


@pytest.mark.parametrize(
    ("fact", "known", "event"),
    [
        ("My budget is $2,500.", "My budget is $2,000.", "ASK"),
        ("My salary is 50,500 euros.", "My salary is 50,000 euros.", "UPDATE"),
        ("My salary is 31,000 euros after taxes.", "My salary is 50,000 euros.", "ASK"),
        ("My salary is 4,166 euros a month.", "My salary is 50,000 euros.", "ADD"),
    ],
)
def test_a_number_goes_on_behind_its_comma(fact: str, known: str, event: str) -> None:
    """Two numbers of "2,…" were one value."""
    assert outcomes(decided(fact, known=(known,))) == [(event, None if event == "ADD" else "m0")]


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("We upgraded from Python 3.11 to Python 3.12.", "We use Python 3.11."),
        ("The config moved from /etc/a.toml to /srv/a.toml.", "The config lives in /etc/a.toml."),
    ],
)
def test_what_is_left_behind_may_have_a_point_in_it(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ASK", "m0")]


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("Emma is 37 years old.", "Emma is 4 years old."),
        ("Anna's birthday is June 9.", "Anna's birthday is May 5."),
        ("Ben weighs 4 kg.", "Ben weighs 80 kg."),
        ("Ben is 40 years old now.", "Ben is 3 years old."),
        ("My address is ann@work.example.", "My address is ann@home.example."),
    ],
)
def test_what_two_of_one_name_may_have_is_asked_about(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ASK", "m0")]


def test_what_speaks_of_oneself_has_the_speakers_own_value() -> None:
    known = ("Ann: I'm 34 years old.",)
    assert outcomes(decided("Ann: I'm 35 years old.", known=known)) == [("UPDATE", "m0")]


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("My birthday is May 5.", "My birthday is May 5, 1980."),
        ("The deadline is Friday at noon.", "The deadline is Friday."),
        ("The deadline is 5 May.", "The deadline is May 5."),
        ("We meet Friday at noon.", "We meet Friday."),
    ],
)
def test_a_date_told_more_exactly_is_the_same(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ADD", None)]


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("My office is in Bergen, not Oslo.", "I live in Oslo."),
        ("The dinner is on Thursday, not on Friday.", "The demo is on Friday."),
        ("The shop is closed on Sunday.", "The shop is open on Monday."),
        ("I was vegan for two years.", "I'm vegetarian."),
        ("I was married once.", "I'm single."),
        ("Never use semicolons in Python.", "Always use semicolons."),
    ],
)
def test_what_is_of_something_else_or_past_is_not_asked_about(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ADD", None)]


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("Never use semicolons.", "Always use semicolons."),
        ("I started smoking again.", "I don't smoke."),
        ("It turned out I don't have asthma.", "I have asthma."),
        ("Ich rauche wieder.", "Ich rauche nicht."),
        ("We decided against Redis for caching.", "We decided to use Redis for caching."),
        ("I was laid off.", "I work at Google."),
        ("The shop is closed now.", "The shop sells bread."),
    ],
)
def test_what_is_said_and_denied_is_asked_about(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ASK", "m0")]


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("Ich habe drei Kinder.", "Ich habe zwei Kinder."),
        ("J'ai trois enfants.", "J'ai deux enfants."),
        ("Tengo tres hijos.", "Tengo dos hijos."),
        ("Das Standup ist um 10 Uhr.", "Das Standup ist um 9:30 Uhr."),
        ("We meet at 10 am.", "We meet at 9:30 am."),
        ("The config lives in ~/.config/app.toml.", "The config lives in /etc/app.toml."),
        ("The schema is in db/new.sql.", "The schema is in db/old.sql."),
        (
            "The staging server is stage-2.example.com.",
            "The staging server is stage-1.example.com.",
        ),
        ("My budget for the trip is $2,500.", "My budget for the trip is $2,000."),
        ("My favourite pizza is quattro formaggi.", "My favourite pizza is margherita."),
        ("The default branch is main.", "The default branch is master."),
        ("Der Termin ist am Montag.", "Der Termin ist am Freitag."),
        ("La cita es el lunes.", "La cita es el viernes."),
        ("The shop is closed on Sunday.", "The shop is open on Sunday."),
        ("Rex is not afraid of thunder any more.", "My dog Rex is afraid of thunder."),
    ],
)
def test_another_number_time_path_or_favourite_is_asked_about(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ASK", "m0")]


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        ("I have 2 cats.", "I have two cats."),
        ("The schema is in db/new.sql.", "The fixtures are in db/old.sql."),
        ("My second car is a Fiat.", "My car is a Volvo."),
        ("My favourite foods are pizza and sushi.", "My favourite foods are pizza."),
        ("My favourite film is very old.", "My favourite film is Alien."),
    ],
)
def test_the_same_number_or_what_is_of_another_is_not(fact: str, known: str) -> None:
    assert outcomes(decided(fact, known=(known,))) == [("ADD", None)]


@pytest.mark.parametrize(
    ("fact", "known"),
    [
        (
            "Since I lost my job, things have been tough.",
            "Searching for the perfect studio is a tough job. Hang in there. You'll find it soon!",
        ),
        ("I love to get lost in books.", "Her books are captivating."),
        ("If you cancel the fee is 9 euros.", "If you are late the fee is 5 euros."),
        ("Who is the man on the left in the photo?", "I took this photo in Rome."),
    ],
)
def test_a_word_in_passing_is_not_asked_about(fact: str, known: str) -> None:
    """Of 40 questions that LoCoMo's 2,553 memories opened, 35 were of this kind."""
    assert outcomes(decided(fact, known=(known,))) == [("ADD", None)]


def test_what_ended_is_asked_about_where_a_memory_of_some_sentences_is_about_it() -> None:
    assert outcomes(decided("My dog died.", known=("I love hiking. I have a dog.",))) == [
        ("ASK", "m0")
    ]
