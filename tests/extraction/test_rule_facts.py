"""Facts without a model: which sentences are kept, and how; sentences; statements."""

from __future__ import annotations

import pytest

from agent_memory.extraction.facts import extract
from agent_memory.extraction.rules.facts import facts_by_rules
from agent_memory.extraction.rules.statements import Statement, statement
from agent_memory.models.conversation import Message, MessageRole
from agent_memory.models.enums import MemoryCategory


def user(text: str, name: str | None = None) -> Message:
    return Message(role=MessageRole.USER, content=text, name=name)


def assistant(text: str) -> Message:
    return Message(role=MessageRole.ASSISTANT, content=text)


def kept(*messages: Message) -> list[str]:
    return [fact.text for fact in facts_by_rules(messages)]


@pytest.mark.parametrize(
    "text",
    [
        "I love Italian food.",
        "I hate coriander.",
        "I'm allergic to peanuts.",
        "My sister Ann is a nurse in Leeds.",
        "We decided to use PostgreSQL.",
        "The launch is on 5 May.",
        "My flight leaves next Tuesday.",
        "Our dog Rex died last week.",
        "I\u2019m vegetarian now.",
        "The staging server is called heron.",
        "Did I tell you I got the job?",
        "I never drink coffee after noon",
        "i moved to lisbon",
        "私は寿司が好きです。",
        "我喜欢猫。",
        "Ich wohne in Berlin.",
        "I'm at the airport right now",
        "I'm dying of cancer",
        "I'm hungry after each meal",
        "I already have two cats",
        "Please don't call me at night",
        "I don't, as a rule, drink",
        "God is important to me",
        "J'habite à Lyon avec mes deux filles.",
    ],
)
def test_what_says_something_is_kept(text: str) -> None:
    assert kept(user(text), assistant("OK")) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Hi!",
        "Hello there, good morning!",
        "Thanks a lot!",
        "Thank you so much for your help.",
        "ok",
        "Yes.",
        "Great, thanks",
        "haha",
        "👍",
        "How are you?",
        "What is the capital of France?",
        "could you help me with this",
        "Can you suggest a recipe?",
        "Please summarise this text for me.",
        "Write me a poem about the sea",
        "That's awesome!",
        "Wow, that sounds really great!",
        "I'm so happy to hear that.",
        "You're welcome.",
        "See you tomorrow!",
        "Good luck with it!",
        "I see.",
        "谢谢",
        "你喜欢猫吗\uff1f",
        "ありがとうございます",
        "[image: https://example.com/a.png]",
        "please do",
        "Please don't.",
        "god no",
        "Not for now.",
        "already read it",
        "I've already seen it",
        "yes final",
        "I do.",
        "Yes, I am.",
        "I\u2019m not.",
        "I am starving",
        "lol I'm dying, this is hilarious",
    ],
)
def test_what_says_nothing_is_not(text: str) -> None:
    assert kept(user(text), assistant("OK")) == []


@pytest.mark.parametrize(
    "text",
    [
        "Nice weather here.",
        "Lovely day today!",
        "It's raining again.",
        "Wow, it's really hot in here",
        "Hi! What a beautiful morning!",
        "Sch\u00f6nes Wetter heute.",
        "Es ist so hei\u00df heute!",
        "Hace buen tiempo hoy.",
        "Il pleut encore.",
        "Che bella giornata oggi!",
        "\u0141adna pogoda dzisiaj!",
        "\u53c8\u4e0b\u96e8\u4e86\u3002",
    ],
)
def test_a_remark_on_the_weather_or_the_day_is_not(text: str) -> None:
    assert kept(user(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "It's raining again, so the match is moved to Sunday.",
        "It's always cold in my office.",
        "Great weather for our wedding on Saturday.",
        "My office has no heating. It's freezing.",
        "I love rainy days.",
        "Nice weather makes me happy.",
        "Es regnet, also fahre ich mit dem Bus.",
        "Hace fr\u00edo en mi oficina.",
    ],
)
def test_what_the_weather_leads_to_is_kept(text: str) -> None:
    assert kept(user(text)) == [text]


def test_a_remark_answers_a_question() -> None:
    asked = "How is your new flat?"
    assert kept(assistant(asked), user("It's cold.")) == [f"{asked} It's cold."]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Remember that the key rotates on 1 March.", "The key rotates on 1 March."),
        ("Please remember: Bob is on leave.", "Bob is on leave."),
        ("Don't forget that I hate olives", "I hate olives"),
        ("Forget my phone number.", "Forget my phone number."),
        ("- I have two cats\n- what now?", "I have two cats"),
    ],
)
def test_what_is_said_of_remembering_is_not_kept(text: str, told: str) -> None:
    assert kept(user(text), assistant("OK")) == [told]


def test_of_an_assistant_only_what_lasts_is_kept() -> None:
    said = assistant(
        "Sure! Carbonara is made with eggs and cheese. I've booked a table for 8 pm."
        " Your order number is 4711. Shall I remind you?"
    )
    assert kept(said) == ["I've booked a table for 8 pm. Your order number is 4711."]
    assert kept(Message(role=MessageRole.SYSTEM, content="The user is Bob, 40.")) == []


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("Yes, we will call you back on Monday at 3pm.", True),
        ("I'll ship the part by May 4.", True),
        ("We'll deliver the sofa tomorrow.", True),
        ("I'll explain what you may need.", False),
        ("We will look at three options.", False),
    ],
)
def test_what_an_assistant_will_do_by_when_lasts(text: str, is_kept: bool) -> None:
    assert kept(user("Can someone call me?"), assistant(text)) == [text] * is_kept


def test_a_message_is_one_fact_with_its_speaker_and_place() -> None:
    chat = [
        user("Hello!", "Ann"),
        user("I got a job at last. It is far away.", "Ann"),
        assistant("x"),
    ]
    (fact,) = facts_by_rules(chat)
    assert (fact.text, fact.sources, fact.subject) == (
        "Ann: I got a job at last. It is far away.",
        (1,),
        "Ann",
    )
    assert 0 < fact.confidence < 1


def test_what_can_change_is_a_fact_of_its_own() -> None:
    text = "I have news. I live in Lisbon. It is sunny there in May."
    assert kept(user(text), assistant("x")) == [
        "I live in Lisbon.",
        "I have news. It is sunny there in May.",
    ]


def test_questions_stay_among_people_and_go_where_there_is_an_assistant() -> None:
    text = "I adopted a cat on Friday! How is your dog? Wow."
    assert kept(user(text, "Ann"), user("Fine.", "Bob")) == [
        "Ann: I adopted a cat on Friday! How is your dog?"
    ]
    assert kept(user(text), assistant("Nice!")) == ["I adopted a cat on Friday!"]


def test_a_fact_is_there_once_and_short() -> None:
    assert kept(user("I love pasta."), user("i love PASTA.")) == ["I love pasta."]
    long = " ".join(f"I own book number {n}." for n in range(100))
    assert max(map(len, kept(user(long)))) <= 500
    assert " ".join(kept(user(long))) == long


def test_without_a_model_rules_extract() -> None:
    extraction = extract([user("I love pasta."), user("Thanks!")], None)
    assert [fact.text for fact in extraction.facts] == ["I love pasta."]
    assert (extraction.by, extraction.metadata.model_used) == ("rules", "rules")
    assert not extraction.metadata.custom_prompt_used


# Statements -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "subject", "attribute", "value"),
    [
        ("My favourite colour is blue.", "", "favourite colour", "blue"),
        ("my favorite color is now green", "", "favourite colour", "green"),
        ("I live in Paris", "", "home", "paris"),
        ("I've just moved to Lisbon!", "", "home", "lisbon"),
        ("I'm based in the Netherlands at the moment", "", "home", "netherlands"),
        ("Ann: I moved to Oslo last month.", "ann", "home", "oslo"),
        ("Ann lives in Oslo", "ann", "home", "oslo"),
        ("User works at Google", "", "employer", "google"),
        ("I joined Meta as an engineer", "", "employer", "meta"),
        ("I work as a nurse", "", "job", "nurse"),
        ("I'm 31 years old", "", "age", "31"),
        ("My dog's name is Rex", "", "dog name", "rex"),
        ("My phone number is 555-1234", "", "phone number", "555-1234"),
        ("The deadline is now Friday", "", "deadline", "friday"),
    ],
)
def test_a_statement(text: str, subject: str, attribute: str, value: str) -> None:
    found = statement(text)
    assert isinstance(found, Statement)
    assert (found.subject, found.attribute, found.value.form) == (subject, attribute, value)


@pytest.mark.parametrize(
    "text",
    [
        "I don't live in Paris",
        "I used to live in Paris",
        "I want to live in Rome",
        "If I lived in Rome, I would sing",
        "He lives in Paris",
        "My name is not Bob",
        "My budget is maybe 500",
        "I might move to Rome",
        "My boss is angry",
        "I love pasta",
        "I live in Paris? " * 30,
        "I moved to the left so that everybody who was behind me could see the stage",
    ],
)
def test_no_statement(text: str) -> None:
    assert statement(text) is None


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("My allergies:\n- peanuts\n- pollen", ["My allergies: peanuts, pollen"]),
        ("**Team:**\n\n* Ann (lead)\n* Bob", ["**Team:** Ann (lead), Bob"]),
        ("We like:\n1. Alien\n2. Heat\nAnd Rex.", ["We like: Alien, Heat And Rex."]),
        ("## Allergies\n\n- nuts\n- eggs\n- cow milk", ["Allergies: nuts, eggs, cow milk"]),
        ("Cities we saw\n1. Rome\n2. Oslo", ["Cities we saw: Rome, Oslo"]),
        ("Stack:\n- Python\n- a Postgres 16 server", ["Stack: Python a Postgres 16 server"]),
        ("| Tool |\n|---|\n| ruff |\n| mypy |", ["| Tool | | ruff | | mypy |"]),
        ("Our cats:\nTom\nMia", ["Our cats: Tom, Mia"]),
        ("Translate these:\n- dog\n- cat", []),
        ("Please do this now:\n- refactor\n- My name is Ann", ["My name is Ann"]),
        (
            "My notes:\n- gym\n- My wife is Ann\n- what is the weather?",
            ["My wife is Ann", "My notes: gym"],
        ),
    ],
)
def test_a_list_of_single_words_is_kept_with_what_it_is_a_list_of(
    text: str, facts: list[str]
) -> None:
    assert kept(user(text)) == facts


@pytest.mark.parametrize(
    "text",
    [
        "Soup: boil two carrots. Add salt. Put in noodles.",
        "To reset the router, hold the button. Check the light. Run the setup again.",
        "How to release: bump the version. Push the tag. Update the wiki.",
        "To build the tests:\nmake test",
        "Conventions:\n- Run make lint\n- Write tests",
        "Release steps:\n- Bump the version\n- Push the tag",
        "Is the pool heated? Yes, to 28 degrees.",
        "Who has the key? Ann.",
        "Q: What is the gate code?\nA: 4711",
        "Medication\nibuprofen 400 mg, mornings\nmetformin",
    ],
)
def test_steps_answers_and_single_words_stay_with_what_they_belong_to(text: str) -> None:
    assert kept(user(text), assistant("OK")) == [" ".join(text.replace("\n- ", "\n").split())]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("I live in Oslo. Write me a poem about it.", ["I live in Oslo."]),
        ("I have two kids. Run the tests.", ["I have two kids."]),
        ("Fact: I am deaf. Write me a poem.", ["Fact: I am deaf."]),
        ("Python", []),
        ("Fix these:\n- run the tests\n- add types", []),
        ("How are you? Fine.", []),
        ("Give me a recipe, I'm vegan.", ["Give me a recipe, I'm vegan."]),
        ("Give me a recipe, i'm vegan", ["Give me a recipe, i'm vegan"]),
        ("Translate this, my mother is deaf.", ["Translate this, my mother is deaf."]),
        ("Send this to my boss, my mother and my friends.", []),
        ("Rewrite the essay, I need it soon.", []),
    ],
)
def test_what_is_asked_for_stays_beside_nothing(text: str, facts: list[str]) -> None:
    assert kept(user(text), assistant("OK")) == facts


@pytest.mark.parametrize(
    "text",
    [
        "My son is 4, which books do you recommend?",
        "I'm trying to plan my move to Graz, and I must be out by May 3, can you help me?",
        "We're stuck on the release of 2.4, so can you draft the notes?",
        "My mom, Wendy, told me to rest, but I'm not sure I can, got any tips?",
        "My order 5567 never arrived, where is it?",
        "Ich bin schwanger, darf ich Sushi essen?",
        "Wir haben 40 Nutzer, reicht der freie Tarif?",
        "Je suis végétarien, que puis-je cuisiner ?",
        "J'ai deux enfants, quelle voiture me conseilles-tu ?",
        "Soy vegetariano, ¿qué puedo cocinar?",
        "The deadline is March 5, isn't it?",
        "We deploy on Fridays, right?",
        "Deadline moved to March 5, is that fine?",
        "I prefer short emails, but I'm not sure how to close them, any ideas?",
        "What should I pack for the trip, considering I've never seen snow?",
        "FYI, I finished the pottery course - want to see a cup?",
        "I'm vegan, what can I eat?",
        "hi, i'm new in berlin, where do i register?",
        "I can't eat nuts, is this fine?",
        "By the way, did I tell you that I moved?",
        "As you know I'm vegan, what can I order?",
    ],
)
def test_what_is_told_beside_a_question_is_kept(text: str) -> None:
    assert kept(user(text), assistant("OK")) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "My dog, is he ill?",
        "I'm trying to sort a list, how do I do that?",
        "I'm not sure, can you check it?",
        "My code does not compile, what is wrong?",
        "Ich verstehe das nicht, kannst du es erklären?",
        "Je ne comprends pas, tu peux répéter ?",
        "Y tú, ¿qué piensas?",
        "Buenos días, ¿qué tal?",
        "What colour did I mention for the kitchen?",
        "In Paris, right?",
        "How should I plan the week, considering my other duties?",
    ],
)
def test_a_question_that_tells_nothing_beside_is_not(text: str) -> None:
    assert kept(user(text), assistant("OK")) == []


def test_a_program_in_a_message_stays_whole_and_states_nothing() -> None:
    """Each "width: …" was a memory, and opened a question about the last."""
    css = "```css\n.a {\n  width: 100%;\n}\n\n.b {\n  width: 50%;\n}\n```"
    said = kept(user(f"Our cards look like this: {css}\nI like them."), assistant("OK"))
    bare = " ".join(css.split())
    assert said == [f"Our cards look like this: {bare} I like them."]
    assert kept(user(css), assistant("OK")) == [bare]
    assert kept(user(f"Fix this:\n{css}"), assistant("OK")) == []
    assert kept(user(f"That worked:\n{css}"), assistant("OK")) == [bare]
    assert kept(user("Run ```make test``` before each commit."), assistant("OK")) == [
        "Run ```make test``` before each commit."
    ]
    nested = f"````markdown\n{css}\nwidth: 60%\n````"
    assert kept(user(nested), assistant("OK")) == [" ".join(nested.split())]
    assert kept(user("Fix this."), assistant(f"I've saved it for you.\n{css}")) == [
        "I've saved it for you."
    ]
    assert kept(user("```\nThe fence is open. I live in Oslo."), assistant("OK"))


def test_a_bare_line_of_a_program_is_kept_beside_words_alone() -> None:
    error = "KeyError: 'DATABASE_URL'"
    assert kept(user(error)) == kept(user(f"Fix this:\n{error}")) == []
    assert kept(user(f"I set it in .env.\n{error}")) == [f"I set it in .env. {error}"]


@pytest.mark.parametrize(
    ("lead", "line"),
    [("Install with:", "pip install foo"), ("deploy with", "git push origin main")],
)
def test_a_line_of_a_program_stays_if_the_line_before_says_what_it_is_for(
    lead: str, line: str
) -> None:
    assert kept(user(f"{lead}\n{line}")) == [line]
    assert kept(user(line)) == kept(user(f"Explain this:\n{line}")) == []


@pytest.mark.parametrize(
    "printed",
    [
        'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g(x=1)\nOSError: 1',
        "npm ERR! code ERESOLVE\nnpm ERR! Found: react@18.2.0",
        "diff --git a/x b/x\n- retries = 3\n+ retries = 5",
        "2026-01-02 10:00:00 ERROR api: The port is 8080",
    ],
)
def test_what_a_program_prints_stays_whole_beside_words_alone(printed: str) -> None:
    """Without a fence, "Found: react@18.2.0" was a memory of its own, and a diff lost its signs."""
    assert kept(user(printed)) == kept(user(f"Why does it fail?\n{printed}")) == []
    assert kept(user(f"{printed}\nI live in Oslo.")) == ["I live in Oslo."]
    words = "The build is slow since Monday."
    assert kept(user(f"{words}\n{printed}")) == [" ".join(f"{words} {printed}".split())]


@pytest.mark.parametrize(
    ("text", "is_preference"),
    [
        ("check-in is 3pm, checkout 10", False),
        ("don't do saturdays anymore, wednesdays now", False),
        ("Build takes nine minutes.", False),
        ("Merge to main needs two approvals.", False),
        ("Don't work at Acme any more.", False),
        ("Update on the release: it moved to May.", False),
        ("Don't use tabs anymore.", True),
        ("Don't do inline styles any more.", True),
        ("Don't work on main any more.", True),
        ("Don't do force pushes on main any more.", True),
        ("Do not go over budget any more.", True),
        ("Don't go through the proxy any more.", True),
        ("Update on Fridays only.", True),
        ("Don't do that.", True),
        ("Check the changelog before upgrading anything.", True),
        ("Add a test for every bug you fix.", True),
    ],
)
def test_only_what_is_to_be_done_is_a_preference(text: str, is_preference: bool) -> None:
    (fact,) = facts_by_rules([user(text)])
    assert (fact.category is MemoryCategory.PREFERENCE) is is_preference


@pytest.mark.parametrize(
    "text",
    [
        "I need a regex for US phone numbers, can you write one?",
        "I'd like a poem about Spring, could you write one?",
        "J'ai une question, tu peux m'aider ?",
        "Gracias por todo, ¿qué más?",
    ],
)
def test_what_only_leads_to_a_question_is_not_kept(text: str) -> None:
    assert kept(user(text), assistant("OK")) == []


def test_a_value_alone_corrects_what_its_own_author_said_just_before() -> None:
    said = [
        ("Ann", "The recital is on June 3."),
        ("Bob", "The picnic has tea."),
        ("Ann", "No, I meant June 4. I bring cake."),
        ("Bob", "It has 12,5 km."),
        ("Bob", "Sorry, I meant 13,5."),
    ]
    assert kept(*(user(text, name) for name, text in said))[2:] == [
        "Ann: No, the recital is on June 4.",
        "Ann: I bring cake.",
        "Bob: It has 12,5 km.",
        "Bob: No, it has 13,5 km.",
    ]


@pytest.mark.parametrize(
    ("text", "asked", "correction"),
    [
        ("I had 3 figs.", "How old are you, 20?", "No, I meant 21."),
        ("I had 3 figs.", "Are you twenty?", "No, I meant 21."),
        ("The recital is on June 3.", "And was the exam on May 5?", "No, I meant May 6."),
        ("The class begins at 3pm.", "Is dinner at 7 then?", "Sorry, I meant 8pm."),
        ("We meet in Vienna.", "Does Tom live in Graz?", "No, I meant in Linz."),
        ("We meet in Vienna.", "Graz, was it?", "No, I meant in Linz."),
    ],
)
@pytest.mark.parametrize("role", ["assistant", "user"])
def test_a_value_alone_may_correct_what_somebody_else_said_last(
    text: str, asked: str, correction: str, role: str
) -> None:
    def said_after(other: str) -> list[str]:
        between = assistant(other) if role == "assistant" else user(other, "Bob")
        return kept(user(text, "Ann"), between, user(correction, "Ann"))

    assert said_after(asked)[-1] == f"Ann: {correction}"
    assert said_after("I see. Go on.")[-1] != f"Ann: {correction}"
