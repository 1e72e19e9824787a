"""Short answers to an assistant's question: kept behind it, and read as what they state."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_memory import AgentMemory
from agent_memory.extraction.rules.answers import as_statement
from agent_memory.extraction.rules.facts import facts_by_rules
from agent_memory.models.conversation import Message, MessageRole


def kept(asked: str, reply: str, name: str | None = None) -> list[str]:
    messages = [
        Message(role=MessageRole.ASSISTANT, content=asked),
        Message(role=MessageRole.USER, content=reply, name=name),
    ]
    return [fact.text for fact in facts_by_rules(messages)]


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        ("Which city do you live in?", "Bergen"),
        ("What's your daughter's name?", "Clara."),
        ("How old is she?", "7"),
        ("What's your blood type?", "B+"),
        ("Are you vegetarian?", "Yes"),
        ("Do you smoke?", "Nope!"),
        ("Do you smoke?", "No, I quit ten years ago"),
        ("Do you like jazz?", "yes, I love it"),
        ("Do you have any allergies?", "none"),
        ("Are you married?", "I'm not"),
        ("Have you ever been to Japan?", "twice"),
        ("Are your parents still alive?", "only my mother"),
        ("You fly on June 4, correct?", "correct"),
        ("So you live in Zurich.", "exactly"),
        ("So you live in Zurich.", "That's right."),
        ("Is your name Kim?", "That's right."),
        ("Are you a nurse?", "that is correct"),
        ("Is Rome your home?", "It is."),
        ("Is Ann your sister?", "Yes, she is."),
        ("Are you allergic to anything?", "Not that I know of."),
        ("Do your kids have asthma?", "No, not that we know of."),
        ("Should I use tabs or spaces?", "spaces please"),
        ("Klein or Osei?", "the second one"),
        ("Can you drive?", "I can't."),
        ("Do you eat meat?", "God no"),
        ("What's your budget?", "900 euros. Not a cent more."),
        ("Wo wohnst du?", "Bergen"),
        ("Where would you like to go?", "Lisbon"),
        ("Rauchst du?", "Nein"),
        ("Bist du Vegetarier?", "ja"),
        ("Haben Sie Kinder?", "Nein."),
        ("Est-ce que tu fumes ?", "Non"),
        ("Es-tu végétarien ?", "oui"),
        ("Fumez-vous ?", "Non, jamais."),
        ("¿Fuma usted?", "Nunca."),
        ("Vous avez une voiture ?", "oui"),
        ("¿Fumas?", "No"),
        ("¿Eres vegetariano?", "sí"),
        ("¿Estás casado?", "Sí."),
        ("¿Está embarazada?", "Sí."),
        ("¿Tiene seguro médico?", "No."),
        ("¿Tiene usted hijos?", "No."),
        ("¿Tiene que tomar insulina?", "Sí."),
        ("¿Tienes sentido del ritmo?", "Sí."),
        ("¿Toma medicamentos?", "No."),
        ("¿Fuma?", "No."),
        ("¿Ha sido operado?", "No."),
        ("Hat Ihr Vater Diabetes?", "Nein."),
        ("Leben deine Großeltern?", "ja"),
        ("Votre mère est-elle en vie ?", "Non."),
        ("Est-ce que ton frère fume ?", "oui"),
        ("你吃素吗？", "是的"),
        ("タバコを吸いますか？", "いいえ"),
    ],
)
def test_an_answer_is_kept_behind_its_question(asked: str, reply: str) -> None:
    assert kept(asked, reply) == [f"{asked} {reply}"]


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        ("Do you want me to run the tests?", "yes"),
        ("Shall I continue?", "yes please"),
        ("Are you sure?", "yes"),
        ("Do you see the error?", "yes"),
        ("Did you restart it?", "yes"),
        ("Do you have any questions?", "no"),
        ("Does that help?", "yes thanks"),
        ("Is that right?", "correct"),
        ("Is that correct?", "That's correct."),
        ("Is this your file?", "That's right."),
        ("Should I run the tests?", "That's right."),
        ("Are you sure?", "That's right."),
        ("Ready?", "That's right."),
        ("Did it work?", "Not that I know of."),
        ("Anything else?", "Not that I know of."),
        ("Do you have other questions?", "Not that I know of."),
        ("How are you?", "good thanks"),
        ("Anything else?", "no"),
        ("Can you share the log?", "sure, one sec"),
        ("What's your favourite language?", "I don't know"),
        ("Do you have allergies?", "no, not sure"),
        ("Who's your manager?", "why do you ask?"),
        ("Which one do you prefer?", "the first"),
        ("What's your name?", "ok"),
        ("What is your name?", "Guess"),
        ("You should restart it.", "yes"),
        ("What should I do next?", "run the tests"),
        ("Möchtest du, dass ich das speichere?", "ja"),
        ("Soll ich weitermachen?", "ja"),
        ("Verstehst du?", "ja"),
        ("Hast du noch Fragen?", "nein"),
        ("Tu veux que je continue ?", "oui"),
        ("As-tu des questions ?", "non"),
        ("¿Quieres que lo haga?", "sí"),
        ("¿Tienes más preguntas?", "no"),
        ("你要我继续吗？", "是的"),
        ("¿Está seguro?", "Sí."),
        ("¿Estás segura?", "Sí."),
        ("¿Tiene el error todavía?", "Sí."),
        ("¿Tiene alguna pregunta?", "No."),
        ("¿Toma mucho tiempo?", "No."),
        ("¿Tiene sentido?", "Sí."),
        ("¿Tiene prisa?", "Sí"),
        ("¿Tienes mucha prisa?", "No."),
        ("¿Tiene algún comentario?", "No"),
        ("¿Tienes sugerencias?", "No"),
        ("¿Tiene que ser en Python?", "Sí"),
        ("¿Ha sido útil?", "Sí."),
        ("¿Es correcto?", "Sí."),
        ("¿Bebe el agente de la cola?", "No."),
        ("Ist Ihre Frage beantwortet?", "Ja."),
        ("Soll dein Bruder die Mail bekommen?", "Ja."),
        ("Votre problème est-il résolu ?", "Oui."),
        ("Ton script marche ?", "Non."),
    ],
)
def test_what_is_being_done_and_no_answer_are_no_facts(asked: str, reply: str) -> None:
    assert kept(asked, reply) == []


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        ("What's your name?", "Jo."),
        ("Where do you live?", "Nice."),
        ("Which language is the backend written in?", "Go."),
        ("Which knee hurts?", "Right."),
        ("Which parent had cancer?", "Both."),
        ("When do you take the pill?", "Morning."),
        ("How do you take your coffee?", "Sweet."),
        ("What is your wife's maiden name?", "Same"),
        ("And at which school is your son?", "Super"),
        ("Wie oft trinken Sie?", "Nie."),
        ("Wie heißt dein Hund?", "Klar"),
        ("Où habitez-vous ?", "Nice."),
        ("¿Cómo se llama su perro?", "Bravo."),
    ],
)
def test_a_word_that_is_small_talk_elsewhere_may_be_what_is_asked_for(
    asked: str, reply: str
) -> None:
    assert kept(asked, reply) == [f"{asked} {reply}"]


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        ("What's your name?", "Thanks!"),
        ("What's your name?", "Yes."),
        ("Which knee hurts?", "Sorry?"),
        ("Which city?", "Wow"),
        ("Which one do you prefer?", "Both."),
        ("Which file do you mean?", "Right."),
        ("Where were we?", "Right."),
        ("What about Friday?", "Nice."),
        ("What's next?", "Super."),
        ("How do you like the design?", "Sweet."),
        ("What would you like to do?", "Stop."),
        ("How was the concert?", "Nice."),
        ("Wie geht's?", "Super."),
        ("Wie heißt du?", "Danke."),
        ("Wie heißt dein Hund?", "Ja."),
        ("Comment vas-tu ?", "Super."),
        ("¿Cómo estás?", "Genial."),
        ("¿Cómo te llamas?", "Perdona."),
    ],
)
def test_a_word_that_answers_no_question_is_no_fact(asked: str, reply: str) -> None:
    assert kept(asked, reply) == []


@pytest.mark.parametrize(
    ("asked", "reply", "facts"),
    [
        ("Where do you live?", "I live in Bergen now.", ["I live in Bergen now."]),
        ("Do you live in Oslo?", "No, I live in Bergen.", ["No, I live in Bergen."]),
        ("How can I help you today?", "flight to Rome", ["flight to Rome"]),
        ("And you?", f"{'painting and ' * 10}music", [f"{'painting and ' * 10}music"]),
        (
            "Do you smoke?",
            "No. My wife does though.",
            ["Do you smoke? No.", "My wife does though."],
        ),
        ("Any allergies?", "- nuts\n- milk", ["Any allergies? nuts, milk"]),
        ("What does it print?", "npm ERR! code ERESOLVE\nnpm ERR! Found: react@18.2.0", []),
        ("Which version?", "```\n3.11.7\n```", ["``` 3.11.7 ```"]),
    ],
)
def test_what_says_enough_needs_no_question(asked: str, reply: str, facts: list[str]) -> None:
    assert kept(asked, reply) == facts


def test_only_the_questions_at_the_end_of_a_message_are_kept() -> None:
    asked = "Hi! How are you? What is your name? And how old are you?"
    assert kept(asked, "Ann, 34") == ["What is your name? And how old are you? Ann, 34"]
    asked = "1. How old are you?\n2. Do you smoke?"
    assert kept(asked, "40\nno") == ["How old are you? Do you smoke? 40, no"]
    asked = "Which city do you live in? I need it for the weather."
    assert kept(asked, "Bergen") == ["Which city do you live in? Bergen"]
    assert kept(f"{'So ' * 70}where do you live?", "Bergen") == []
    assert kept("Which city do you live in?", "Bergen", "Ann") == [
        "Ann: Which city do you live in? Bergen"
    ]


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Which city do you live in? Bergen", "I live in Bergen"),
        ("Thanks! Where do you work? at Vivantes", "I work at Vivantes"),
        ("What's your daughter's name? It's Clara.", "My daughter's name is Clara."),
        ("How old are you? 34", "I am 34"),
        ("And your weight? 80 kg", "My weight is 80 kg"),
        ("Do you smoke? No.", "I don't smoke"),
        ("Are you vegetarian? yes", "I am vegetarian"),
        ("Have you eaten? yes", "Have you eaten? yes"),
        ("Do you smoke? rarely", "Do you smoke? rarely"),
        ("I live in Bergen.", "I live in Bergen."),
        ("How old are you? 33. Sorry, 34.", "I am 34."),
    ],
)
def test_an_answer_states_something(text: str, stated: str) -> None:
    assert as_statement(text) == stated


@pytest.mark.parametrize(
    ("known", "asked", "reply"),
    [
        ("I live in Oslo.", "Which city do you live in?", "Bergen"),
        ("I work at Acme.", "Where do you work?", "at Vivantes"),
        ("My budget is 900 euros.", "What is your budget?", "1200 euros"),
        ("I smoke.", "Do you smoke?", "no"),
    ],
)
def test_an_answer_is_compared_as_a_statement(
    tmp_path: Path, known: str, asked: str, reply: str
) -> None:
    answered = [{"role": "assistant", "content": asked}, {"role": "user", "content": reply}]
    stated = [{"role": "user", "content": known}]
    for name, first, second, old in (
        ("before", stated, answered, known),
        ("after", answered, stated, f"{asked} {reply}"),
    ):
        with AgentMemory(name, root=tmp_path, embedder="none") as memory:
            memory.add(first)
            memory.add(second)
            assert [review.content for review in memory.reviews()] == [old]
            assert memory.count() == 2


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        ("Do you take any pills?", "Yes, 20 mg of lisinopril. Sorry, 40 mg."),
        ("When is your birthday?", "May 5. Sorry, May 6."),
        ("When is the meeting?", "On Tuesday. Sorry, Wednesday."),
        ("Do you smoke?", "Yes, 5 a day. No, 10."),
        ("Wann ist dein Termin?", "Am Montag. Nein, Dienstag."),
        ("Quand est votre rendez-vous ?", "Mardi. Non, mercredi."),
    ],
)
def test_an_answer_that_corrects_itself_is_kept_as_it_is(asked: str, reply: str) -> None:
    assert kept(asked, reply) == [f"{asked} {reply}"]


@pytest.mark.parametrize(
    ("asked", "reply", "facts"),
    [
        ("Anything else?", "My son is 8. No, 9.", ["My son is 8.", "No, my son is 9."]),
        ("Ok.", "My son is 8. No, 9.", ["My son is 8.", "No, my son is 9."]),
        ("When do you fly?", "I fly on May 5. No, May 6.", ["I fly on May 5. No, I fly on May 6."]),
        (
            "How much do you weigh?",
            "80 kg. I have a dog. Sorry, 82 kg.",
            ["80 kg. I have a dog. No, 82 kg."],
        ),
    ],
)
def test_what_says_enough_and_corrects_itself_is_rewritten(
    asked: str, reply: str, facts: list[str]
) -> None:
    assert kept(asked, reply) == facts


@pytest.mark.parametrize("known", ["May 5", "May 6", "May 1"])
def test_an_answer_that_corrects_itself_states_its_last_value(tmp_path: Path, known: str) -> None:
    reply = "May 5. Sorry, May 6."
    with AgentMemory("erin", root=tmp_path, embedder="none") as memory:
        memory.add(f"My birthday is {known}.")
        memory.add(
            [
                {"role": "assistant", "content": "When is your birthday?"},
                {"role": "user", "content": reply},
            ]
        )
        old, new = f"My birthday is {known}.", f"When is your birthday? {reply}"
        left = {item.content for item in memory.get_all()}
        assert left == ({old} if known == "May 6" else {old, new})
        assert len(memory.reviews()) == (known != "May 6")


def test_an_answer_is_found_by_the_words_of_its_question(tmp_path: Path) -> None:
    with AgentMemory("found", root=tmp_path, embedder="none") as memory:
        memory.add(
            [
                {"role": "assistant", "content": "Do you have any food allergies?"},
                {"role": "user", "content": "Peanuts."},
                {"role": "assistant", "content": "Noted. And where do you live?"},
                {"role": "user", "content": "Lyon"},
            ]
        )
        (hit,) = memory.search("what am I allergic to?", limit=1)
        assert hit.memory.content == "Do you have any food allergies? Peanuts."
        (hit,) = memory.search("where do I live?", limit=1)
        assert hit.memory.content == "And where do you live? Lyon"
