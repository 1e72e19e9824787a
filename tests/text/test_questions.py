"""Whether a question asks for several things."""

import pytest

from agent_memory.text.questions import asks_for_several


@pytest.mark.parametrize(
    "question",
    [
        "Which books has Ann read?",
        "what databases do we use",
        "In what ways can the build be started?",
        "What kinds of errors did the deploy log?",
        "So, which of the new servers are down?",
        "What people were at the meeting?",
        "HOW MANY times did we deploy?",
        "What did Ann say, and which editors does she use?",
    ],
)
def test_several_things_are_asked_for_by_a_plural_before_the_verb(question: str) -> None:
    assert asks_for_several(question)


@pytest.mark.parametrize(
    "question",
    [
        "",
        "What does Ann read?",
        "What is Ann's address?",
        "Which status was returned?",
        "What gas does it burn?",
        "Which class does the parser use?",
        "What inspires Ann to write?",
        "Whose books has Ann read?",
        "Ann has read many books",
        "How is it that so many tests fail?",
        "which books",
        "Welche Bücher hat Ann gelesen?",
    ],
)
def test_all_else_may_have_one_answer(question: str) -> None:
    assert not asks_for_several(question)


def test_of_a_log_that_is_pasted_the_beginning_is_read() -> None:
    assert not asks_for_several("line " * 10_000 + "which books has Ann read?")
