"""Whatever is corrected in a text, the correction is no duplicate; what says nothing, is one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_memory.models.fields import validate_memory_content
from agent_memory.text.normalize import DuplicateGrade, exact_form, grade_of, near_form

UNTIMED = settings(deadline=None, max_examples=300)
CONTENT = """
    deploy friday Alice Bob manages prefers dark light theme standup harbour lantern tabs spaces
    C C++ C# v1.2 v1.3 -5 5 1.5 15 9:30 10:00 $5 5% x=1 f(x) f(y) save() Node.js B I 10² 102
    数据库 数据 กาแฟ naïve naive Maße Masse 🎉 🎊 x
    for in with on over before or and only just no not never without
    don't do isn't is a_b a-b a/b /etc ~/x "x" 'x' x #3 3 @ann ann
    """.split()
FILLERS = ("the", "a", "very", "also", "please")
WORD = st.sampled_from(CONTENT)
WORDS = st.lists(WORD, min_size=1, max_size=9)
SENTENCE = st.lists(st.sampled_from([*CONTENT, *FILLERS]), min_size=1, max_size=9)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
PLAIN = st.lists(
    st.sampled_from("deploy friday team prefers dark theme harbour lantern 数据库 naïve".split()),
    min_size=1,
    max_size=9,
)


def say(words: list[str]) -> str:
    return " ".join(words)


@UNTIMED
@given(words=SENTENCE, place=st.integers(0, 8), new=WORD)
def test_a_word_that_was_changed_is_no_duplicate(words: list[str], place: int, new: str) -> None:
    place %= len(words)
    corrected = [*words[:place], new, *words[place + 1 :]]
    if words[place] in FILLERS or words[place].lower() == new.lower():
        return
    assert grade_of(say(words), say(corrected)) is None


@UNTIMED
@given(words=SENTENCE, place=st.integers(0, 9), new=WORD)
def test_a_word_that_was_added_or_dropped_is_no_duplicate(
    words: list[str], place: int, new: str
) -> None:
    place %= len(words) + 1
    longer = [*words[:place], new, *words[place:]]
    assert grade_of(say(words), say(longer)) is None
    assert grade_of(say(longer), say(words)) is None


@UNTIMED
@given(words=WORDS, place=st.integers(0, 8))
def test_words_in_another_order_are_no_duplicate(words: list[str], place: int) -> None:
    place %= len(words)
    other = (place + 1) % len(words)
    swapped = list(words)
    swapped[place], swapped[other] = swapped[other], swapped[place]
    if [word.lower() for word in swapped] != [word.lower() for word in words]:
        assert grade_of(say(words), say(swapped)) is None


@UNTIMED
@given(words=WORDS, one=st.integers(-9999, 9999), other=st.integers(-9999, 9999))
def test_another_number_is_no_duplicate(words: list[str], one: int, other: int) -> None:
    for form in ("{}", "v{}", "{}%", "1.{}", "({})", "{}.", "{},", "{}!", "${}:"):
        texts = [f"{say(words)} {form.format(number)} {say(words)}" for number in (one, other)]
        assert (grade_of(*texts) is None) is (one != other)


@UNTIMED
@given(words=PLAIN, data=st.data())
def test_case_space_and_the_last_stop_make_no_difference(
    words: list[str], data: st.DataObject
) -> None:
    if data.draw(st.booleans()):  # a single word in capitals may be a name
        written = [word.upper() for word in words]
    else:
        written = [data.draw(st.sampled_from([w, w.capitalize()])) for w in words]
    spaces = data.draw(st.sampled_from([" ", "  ", "\n", "\t", " \r\n", "\u3000"]))
    stop = data.draw(st.sampled_from(["", ".", "!", "…", " "]))
    assert grade_of(say(words), spaces.join(written) + stop) is DuplicateGrade.EXACT


@UNTIMED
@given(words=PLAIN, place=st.integers(0, 8), filler=st.sampled_from(FILLERS))
def test_fillers_and_commas_make_no_more_than_a_near_duplicate(
    words: list[str], place: int, filler: str
) -> None:
    place %= len(words)
    padded = [*words[:place], filler, *words[place:]]
    assert grade_of(say(words), say(padded)) is DuplicateGrade.NEAR
    if place:
        comma = [*words[: place - 1], words[place - 1] + ",", *words[place:]]
        assert grade_of(say(words), say(comma)) is DuplicateGrade.NEAR


@UNTIMED
@given(one=ANY_TEXT, other=ANY_TEXT)
def test_any_text_has_forms_and_is_the_duplicate_of_itself(one: str, other: str) -> None:
    assert grade_of(one, one) is DuplicateGrade.EXACT
    assert grade_of(one, other) == grade_of(other, one)
    if validate_memory_content(one)[0]:
        assert near_form(exact_form(one))
