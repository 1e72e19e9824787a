"""What programs print is told from what people write, line by line."""

from __future__ import annotations

import pytest

from agent_memory.text.program_output import split_at_output

TRACEBACK = """Traceback (most recent call last):
  File "app.py", line 3, in <module>
    main()
  File "app.py", line 2, in main
    return {}["a"]
           ~~^^^^^
KeyError: 'a'"""
DIFF = """diff --git a/app.py b/app.py
index 83db48f..bf269f4 100644
--- a/app.py
+++ b/app.py
@@ -1,3 +1,3 @@
 import os

-retries = 3
+retries = 5"""


@pytest.mark.parametrize(
    "printed",
    [
        TRACEBACK,
        TRACEBACK.replace("    ", "").replace("  ", ""),
        DIFF,
        "diff --git a/app.py b/app.py\n- retries = 3\n+ retries = 5",
        "- retries = 3\n+ retries = 5",
        "FAILED tests/test_api.py::test_login - AssertionError: 401\n1 failed, 41 passed in 3.20s",
        "FAILED tests/test_api.py::test_login - AssertionError … 1 failed, 41 passed in 3.20s",
        "$ git status\nOn branch main\nnothing to commit",
        "On branch main\nYour branch is ahead of 'origin/main'.\n\nUntracked files:\n\ta.txt",
        "npm ERR! code ERESOLVE\nnpm ERR! Found: react@18.2.0\nnpm ERR! node_modules/react",
        "2026-01-02 10:00:00 ERROR db: connection refused\n2026-01-02 10:00:01 INFO retrying",
        "2026-01-02T10:00:00.123Z [worker-1] WARN slow\n2026-01-02T10:00:00.124Z gave up",
        "2026-01-02 10:00:00,123 - app.db - ERROR - connection refused",
        "Jan  2 10:00:00 web1 sshd[123]: Failed password for root",
        "TypeError: undefined is not a function\n    at App (src/App.js:10:5)\n    at src/b.js:1:2",
        'Exception in thread "main" java.lang.Error: x\n\tat com.acme.App.main(App.java:14)',
        "error[E0382]: borrow of moved value: `x`\n --> src/main.rs:4:20\n  |\n4 |     f(x);",
        "main.c: In function 'main':\nmain.c:5:10: error: expected ';' before 'return'",
        "$ docker ps\nCONTAINER ID   IMAGE   COMMAND\n3f2a1b   nginx   run",
        "make: *** [Makefile:3: all] Error 2",
        "zsh: command not found: uv",
    ],
)
def test_what_a_program_prints_is_one_part(printed: str) -> None:
    assert list(split_at_output(printed)) == [("", False), (printed, True), ("", False)]
    between = f"It is slow on Mondays.\n{printed}\n\nMy office is in Bergen."
    assert list(split_at_output(between)) == [
        ("It is slow on Mondays.\n", False),
        (printed, True),
        ("\n\nMy office is in Bergen.", False),
    ]


@pytest.mark.parametrize(
    "written",
    [
        "the build fails since Monday: FAILED tests/test_api.py",
        "FAILED tests/test_api.py again, Ann mends it before May",
        "On branch main we run the nightly tests.",
        "On branch main\nI work at night",
        "$ 500 is my budget",
        "Deploy with:\n$ make build\n$ make deploy",
        "Error: my laptop is broken\nWarning: I am allergic to nuts",
        "INFO: the office moves in May\nERROR: none",
        "2026-01-02 10:00 took ibuprofen\n2026-01-02 18:00 took ibuprofen",
        "Name    Age   City\nAnn     5     Oslo\nBob     6     Rome",
        "| Name | Age |\n| Ann | 5 |",
        "Pros and cons:\n+ cheap\n- slow",
        "- slow\n+ cheap",
        "Tests: 3 failed since the move",
        "commit to the plan",
        "at 10:30:00",
        "at Luigi's (Main Road 5:30)",
        "2026-05-05 10:00 - INFO session at TU Graz with Ann",
        "- quality: high\n+ quality: low",
        "--- Shopping\n--- milk",
        "KeyError: 'id'",
    ],
)
def test_what_a_person_may_have_written_is_not(written: str) -> None:
    assert list(split_at_output(written)) == [(written, False)]


def test_words_beside_what_is_printed_are_not_part_of_it() -> None:
    """A table, a list and a sentence next to a log are somebody's own."""
    for own in ("Ann     5     Oslo", "- Ann lives in Oslo", "warning: I am allergic to nuts"):
        for text in (f"npm ERR! code E1\n\n{own}", f"{DIFF}\n\n{own}", f"{TRACEBACK}\n{own}"):
            assert any(own in part for part, is_output in split_at_output(text) if not is_output)
