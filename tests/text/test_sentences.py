"""Texts as sentences: where one ends, for both engines; and texts cut to fit."""

from __future__ import annotations

import pytest

from agent_memory.text.passages import passage
from agent_memory.text.sentences import fitting, sentence_spans, sentences


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith paid $3.50 at 5 p.m. today.", ["Dr. Smith paid $3.50 at 5 p.m. today."]),
        ("It is May 5. We go.", ["It is May 5.", "We go."]),
        ("Milk, eggs, etc. Then bread.", ["Milk, eggs, etc.", "Then bread."]),
        ("Milk, eggs, etc. and bread", ["Milk, eggs, etc. and bread"]),
        ("Trees, e.g. Oaks, grow", ["Trees, e.g. Oaks, grow"]),
        ("He wrote “Go.” Then left", ["He wrote “Go.”", "Then left"]),
        ('He said "Go." Then left...  Fine', ['He said "Go."', "Then left...", "Fine"]),
        ("a\n\n- b\n2) c\n---\n...", ["a", "b", "c"]),
        ("我喜欢猫。我住在北京\uff01好", ["我喜欢猫。", "我住在北京\uff01", "好"]),
        ("see example.com/a.b for v1.2", ["see example.com/a.b for v1.2"]),
        ("", []),
        ("Mein Geburtstag ist am 5. Mai. Gut", ["Mein Geburtstag ist am 5. Mai.", "Gut"]),
        ("Ich wohne im 3. Stock. Gut", ["Ich wohne im 3. Stock.", "Gut"]),
        ("Ich bin 30. Meine Frau ist 31.", ["Ich bin 30.", "Meine Frau ist 31."]),
        ("I am 34. We live in Rome.", ["I am 34.", "We live in Rome."]),
        ("Ich mag z. B. Tee, d. h. grünen", ["Ich mag z. B. Tee, d. h. grünen"]),
        ("Fleurs, p. ex. des lys, de Mme. Durand", ["Fleurs, p. ex. des lys, de Mme. Durand"]),
        ("La Sra. Ruiz vive en EE. UU. con él", ["La Sra. Ruiz vive en EE. UU. con él"]),
        ("My flight is on Dec. 24. Go", ["My flight is on Dec. 24.", "Go"]),
        ("It ends in Dec. We go.", ["It ends in Dec.", "We go."]),
        ("I work at Acme Inc. in Rome. Go", ["I work at Acme Inc. in Rome.", "Go"]),
        ("My boss is Gen. Lee.", ["My boss is Gen. Lee."]),
        ("Er bleibt vom 3. bis zum 15. Passt das?", ["Er bleibt vom 3. bis zum 15.", "Passt das?"]),
        ("Wir sind im 9. Sie ist klug", ["Wir sind im 9.", "Sie ist klug"]),
        ("15. März: Umzug\n3. Mai: Arzt", ["15. März: Umzug", "3. Mai: Arzt"]),
        ("+ cheap\n+ quiet\n+ 49 171", ["cheap", "quiet", "+ 49 171"]),
        ("Am 5. August. Gut", ["Am 5. August.", "Gut"]),
        ("I leave on the 5. August is hot", ["I leave on the 5.", "August is hot"]),
        ("Es kostet 5 Mio. Euro. Gut", ["Es kostet 5 Mio. Euro.", "Gut"]),
        ("Es kostet 5 Mio. Ist das viel?", ["Es kostet 5 Mio.", "Ist das viel?"]),
        ("Wir kommen am Fr. Kommst du?", ["Wir kommen am Fr.", "Kommst du?"]),
        ("My answer is no. Go", ["My answer is no.", "Go"]),
        ("It is in No. 5", ["It is in No. 5"]),
        ("I live on Oak St. Do you?", ["I live on Oak St.", "Do you?"]),
        ("I live in St. Paul. Do you?", ["I live in St. Paul.", "Do you?"]),
        ("We take plan B. It works.", ["We take plan B.", "It works."]),
        ("I met J. R. Hill.\nA. The first", ["I met J. R. Hill.", "A. The first"]),
    ],
)
def test_sentences(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts
    spans = list(sentence_spans(text))
    assert "".join(text[begin:end] for begin, end in spans) == text


@pytest.mark.parametrize(
    "text",
    [
        "We read by March 31. Remember to stay flexible. Good luck",
        "Ann met Dr. Smith at 5 p.m. yesterday. Remember to call her.",
        "我喜欢猫。remember to 我住在北京。好",
    ],
)
def test_the_sentence_around_a_place_is_one_of_the_sentences(text: str) -> None:
    place = text.lower().index("remember")
    assert passage(text, place, place + len("remember")).sentence in sentences(text)


@pytest.mark.parametrize("text", ["x" * 95, "word " * 30, "One is here. " * 12, "猫。" * 40, " a "])
def test_a_text_is_cut_to_fit_and_nothing_is_lost(text: str) -> None:
    pieces = fitting(text, 40)
    assert all(0 < len(piece) <= 40 for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())
