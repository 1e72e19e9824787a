"""The languages of texts, and whether capitals are ordinary in them."""

from __future__ import annotations

import pytest

from agent_memory.text.languages import (
    are_capitals_ordinary,
    is_function_pair,
    language_of_query,
    languages_of,
)

TEXTS = {
    "english": "The printer on the second floor is out of paper and nobody is in the office",
    "german": "Der Drucker im zweiten Stock hat kein Papier und ist nicht mit dem Netz verbunden",
    "french": "Les imprimantes du deuxième étage sont dans la salle de réunion avec le papier",
    "spanish": "La impresora del segundo piso no tiene papel y está en la oficina con los cables",
    "italian": "La stampante è nella sala con il tavolo e non si accende per la mancanza di carta",
    "portuguese": "A impressora do segundo andar não tem papel e está na sala com os cabos da rede",
    "dutch": "De printer op de tweede verdieping is niet aan en het papier ligt op een tafel",
    "swedish": "Skrivaren är inte på och det finns en bunt papper som ligger till höger",
    "russian": "Принтер на втором этаже не работает, и бумага лежит в шкафу для гостей",
    "arabic": "الطابعة في الطابق الثاني من المبنى لا تعمل، كما أن الورق الذي وصل هو في الخزانة",
    "czech": "Tiskárna ve druhém patře je rozbitá a papír, který přišel, se nachází za skříní",
    "danish": "Printeren på anden sal har ikke papir, og der er heller ikke noget til den i skabet",
    "finnish": "Tulostin on toisessa kerroksessa, mutta paperi, joka tuli, on myös poissa",
    "hungarian": "A nyomtató a második emeleten van, és nincs benne papír, ezt a portás is mondta",
    "indonesian": "Mesin cetak yang ada di lantai dua tidak memiliki kertas untuk tamu dan pegawai",
    "norwegian": "Skriveren på andre etasje er ikke på, og det ligger en bunke papir ved siden av",
    "polish": "Drukarka na drugim piętrze nie ma papieru i jest w pokoju, który był dla gości",
    "romanian": "Imprimanta de la etajul doi nu are hârtie și este în sala cu cablurile din pod",
    "turkish": "İkinci kattaki yazıcı için kağıt yok ve bu nedenle olarak bir teknisyen de geldi",
    "greek": "Ο εκτυπωτής στο γραφείο είναι χαλασμένος και το χαρτί δεν είναι στη θέση του",
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_text_tells_its_language(language: str) -> None:
    assert languages_of((TEXTS[language],), "") == {language}


def test_a_store_of_two_languages_has_both_and_that_of_the_query() -> None:
    texts = (TEXTS["english"],) * 8 + (TEXTS["german"],) * 2
    assert languages_of(texts, "") == {"english", "german"}
    assert languages_of(texts, "où est le papier de la salle") == {"english", "german", "french"}


@pytest.mark.parametrize(
    "text", ["", "Rechnung", "1 2 3", "日本語の文章です", "for x in y: import os"]
)
def test_what_has_no_common_words_has_no_language(text: str) -> None:
    assert languages_of((text,), "") <= {"english"}


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("où est le papier de la salle", "french"),
        ("Papier für Drucker", "english"),  # a single word of German
        ("paper", "english"),
    ],
)
def test_a_query_is_in_its_own_language_or_that_of_the_store(query: str, language: str) -> None:
    assert language_of_query((TEXTS["english"],), query) == language


def test_a_query_that_may_be_in_either_language_of_a_store_is_in_none() -> None:
    assert language_of_query((TEXTS["english"], TEXTS["german"]), "Papier") is None
    assert language_of_query((), "Papier") is None


@pytest.mark.parametrize("pair", ["是什", "什么", "的书", "多少", "の値", "値は"])
def test_pairs_that_ask_or_join_are_no_words(pair: str) -> None:
    assert is_function_pair(pair)


@pytest.mark.parametrize("pair", ["合同", "維修", "りん", "カメ", "ไทย"])
def test_pairs_that_may_be_words_are(pair: str) -> None:
    assert not is_function_pair(pair)


def test_capitals_are_ordinary_in_german_and_not_in_english() -> None:
    german = "Gestern hat die Firma den Vertrag mit dem Kunden ohne Angabe von Gründen beendet"
    english = "Yesterday Caroline told everybody in Oslo about the contract with that customer"
    assert are_capitals_ordinary((german,) * 11, german)
    assert not are_capitals_ordinary((english,) * 11, english)


def test_a_few_short_notes_do_not_make_capitals_ordinary() -> None:
    assert not are_capitals_ordinary(("Bob met Alice in Paris", "Call Carol"), "Ask Dave and Eve")
