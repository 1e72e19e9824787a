"""Forms of a word: spelt otherwise, in the plural, misspelt, in parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.text.word_forms import (
    LINKS,
    attached,
    cuts,
    folded,
    german_forms,
    in_pieces,
    irregular_forms,
    is_within_two,
    misspellings,
    pieces,
    spellings,
    splits,
    without_accents,
    without_ending,
)

WORDS = st.text("abcdeäßéωώжё", min_size=1, max_size=9)


@pytest.mark.parametrize(
    ("word", "form"),
    [
        ("Gruesse", "gruße"),
        ("Grüße", "gruesse"),
        ("Strasse", "straße"),
        ("Straße", "strasse"),
        ("Mueller", "muller"),
        ("Kobenhavn", None),
        ("Koebenhavn", "københavn"),
        ("neue", None),
        ("Quelle", None),
        ("Αθήνα", "αθηνα"),
        ("αθηνα", "αθήνα"),
        ("ΔΡΟΜΟΣ", "δρόμος"),
        ("tea", None),
    ],
)
def test_a_word_is_spelt_in_other_ways(word: str, form: str | None) -> None:
    assert (form in spellings(word)) if form else not spellings(word)


@pytest.mark.parametrize("written", ["كتاب", "الكتاب", "والكتاب", "بالكتاب", "للكتاب", "فالكتاب"])
def test_an_arabic_word_is_told_from_what_is_written_before_it(written: str) -> None:
    forms = attached(written, "كتاب")
    assert {"كتاب", "الكتاب", "والكتاب", "بالكتاب", "للكتاب", "كالكتاب", "وكتاب"} <= forms


def test_of_an_arabic_plural_the_stem_is_told_too() -> None:
    forms = attached("المهندسين", "مهندس")
    assert {"والمهندس", "المهندس", "مهندسين", "بالمهندسين"} <= forms


def test_of_a_short_arabic_word_nothing_is_taken_away() -> None:
    assert "رق" not in attached("ورق", "ورق")


def test_a_word_of_many_digraphs_has_few_spellings() -> None:
    assert len(spellings("ssae" * 2_000)) < 50


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("child", "children"),
        ("analysis", "analyses"),
        ("mouse", "mice"),
        ("knife", "knives"),
        ("salesman", "salesmen"),
        ("bookshelf", "bookshelves"),
        ("grandchild", "grandchildren"),
        ("criterion", "criteria"),
        ("buy", "bought"),
        ("chosen", "chose"),
    ],
)
def test_an_irregular_form_is_known_in_both_directions(one: str, many: str) -> None:
    assert many in irregular_forms(one)
    assert one in irregular_forms(many)


@pytest.mark.parametrize(
    ("word", "past"),
    [("choosing", "chose"), ("running", "ran"), ("buys", "bought"), ("leaving", "left")],
)
def test_regular_forms_lead_to_irregular_ones(word: str, past: str) -> None:
    assert past in irregular_forms(word)
    assert word not in irregular_forms(word)


@pytest.mark.parametrize(
    "word", ["human", "table", "man-made", "omen", "king", "made", "meeting", ""]
)
def test_other_words_have_no_irregular_form(word: str) -> None:
    assert not irregular_forms(word)


@pytest.mark.parametrize("slip", ["postgres", "psotgress", "ostgress", "postgresss", "postgrass"])
def test_one_slip_of_each_kind(slip: str) -> None:
    assert slip in misspellings("postgress")
    assert is_within_two("postgress", slip)


@pytest.mark.parametrize(
    ("word", "bare"),
    [
        ("activities", "activit"),
        ("planned", "plann"),
        ("horizontally", "horizont"),
        ("bus", "bus"),
        ("aliver", "aliver"),
    ],
)
def test_an_ending_is_left_out(word: str, bare: str) -> None:
    assert without_ending(word) == bare


@given(WORDS)
def test_a_slip_can_be_taken_back(word: str) -> None:
    assert word not in misspellings(word)
    for other in sorted(misspellings(word))[::7]:
        assert is_within_two(word, other)
        assert is_within_two(other, word)


@pytest.mark.parametrize(
    ("word", "other", "is_near"),
    [
        ("configuration", "confgiuratoin", True),
        ("abcdefgh", "abxdyfgz", False),
        ("abcdefgh", "badcefgh", True),
        ("same", "same", True),
        ("a", "abcd", False),
    ],
)
def test_two_slips_at_most(word: str, other: str, is_near: bool) -> None:
    assert is_within_two(word, other) is is_near


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("getUserById", "get user by id"),
        ("HTTPServer", "http server"),
        ("ENG771", "eng 771"),
        ("python3", "python 3"),
        ("16kHz", "16 khz"),
        ("1250", "1 250"),
        ("1250000", "1 250 000"),
        ("0612345678", "06 12 34 56 78"),
        ("LH99204471", "lh 9920 4471"),
    ],
)
def test_a_name_or_a_number_is_in_pieces(name: str, words: str) -> None:
    assert words.split() in in_pieces(name.lower(), cuts(name), words.split())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("API", "a pi"),
        ("login", "log in"),
        ("Anna", "an na"),
        ("naïveTest", "naïve test"),
        ("2026", "20 26"),
        ("12345678", "1 2 3 4 5 6 7 8"),
        ("12345678", "1 234 5678"),
        ("getUserById", "get user by"),
        ("getUserById", "getuserbyid"),
    ],
)
def test_what_is_no_name_or_not_so_is_in_no_pieces(name: str, words: str) -> None:
    assert words.split() not in in_pieces(name.lower(), cuts(name), words.split())


def test_a_long_number_has_few_pieces() -> None:
    number = "1" * 60
    assert len(pieces(number, cuts(number))) == 0
    number = "12" * 12
    known = pieces(number, cuts(number))
    assert len(known) < 300
    assert next(in_pieces(number, cuts(number), known))


@pytest.mark.parametrize(
    ("word", "form"),
    [
        ("kochen", "gekocht"),
        ("gekocht", "kochen"),
        ("kochte", "gekocht"),
        ("abholen", "abgeholt"),
        ("abgeholt", "abholen"),
        ("gearbeitet", "arbeiten"),
        ("fahren", "gefahren"),
        ("mauern", "gemauert"),
        ("gesammelt", "sammeln"),
        ("zuruckgegeben", "zuruckgeben"),
    ],
)
def test_a_german_verb_has_its_other_forms(word: str, form: str) -> None:
    assert form in german_forms(word)


@pytest.mark.parametrize("word", ["ge", "en", "hut", "abt", "tisch"])
def test_what_is_too_short_is_no_german_verb(word: str) -> None:
    assert german_forms(word) == set()


def test_a_compound_is_parted_where_it_is_linked() -> None:
    ways = set(splits("arbeitsplatz", LINKS, shortest=3))
    assert ("arbeit", "platz") in ways
    assert ("arbeits", "platz") in ways
    assert all(len(head) >= 3 and len(tail) >= 3 for head, tail in ways)
    assert not list(splits("short", LINKS, shortest=3))


@pytest.mark.parametrize(("word", "form"), [("Grüße", "gruße"), ("CAFÉ", "cafe"), ("Ώρα", "ώρα")])
def test_latin_letters_lose_their_accents(word: str, form: str) -> None:
    assert folded(word) == form


def test_a_whole_text_loses_all_accents() -> None:
    assert without_accents("Grüße, Ώρα, CAFÉ") == "gruße, ωρα, cafe"
