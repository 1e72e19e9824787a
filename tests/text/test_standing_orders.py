"""What a user says that holds from now on, and what is only for now."""

from __future__ import annotations

import pytest

from agent_memory.integrations.capture.observations import scan
from agent_memory.text.capture_words import has_ordering_word

HOLDS = """\
Never commit directly to main, always open a pull request.
Use pnpm instead of npm.
Actually the frontend runs on port 5173.
Don't use wildcard imports in this repo.
I prefer small commits with short messages.
Always write docstrings in the Google style.
No, the config lives in settings.toml, not in config.yaml.
We use Poetry for dependencies, not pip.
From now on run mypy before you commit.
Please don't add comments that restate the code.
Prefer composition over inheritance in the domain layer.
Stop using print for debugging, use the logging module.
All timestamps must be stored in UTC.
The staging database is on db-stage-2, not on db-stage-1.
Use British spelling in all user-facing texts.
Avoid mocks, test against the real database.
I like functional components more than classes.
Every migration needs a rollback script.
Correction: the token expires after 15 minutes, not 60.
Keep functions under 40 lines.
Actually, we deploy from the release branch.
Do not touch the generated files under src/gen.
Make sure to always run the linter before pushing.
In this project we name branches feature/<ticket>.
Use snake_case for column names.
Whenever you change the API, update the changelog too.
You should never edit the lock file by hand.
I want all error messages in plain English.
Sorry, the API key header is X-Api-Token, not X-Token.
Use tabs rather than spaces in Go files.
Never use tabs, prefer four spaces for indentation.
Use pytest instead of unittest.
Actually the API listens on port 9090.
Use ruff instead of flake8 from now on.
The project targets Python 3.12 now.
Prefer tabs for indentation.
Always run flake8 before committing.
The code freeze is postponed to March 17.
Don't log personal data.
Use dataclasses for value objects.
Only use pathlib, never os.path.
We use Postgres for everything, not MySQL.
Never push on Fridays.
Each endpoint must have an integration test.
Don't add new dependencies without asking.
Whenever you add a flag, document it in the README.
I prefer explicit imports.
Use kebab-case for CSS classes.
No function may be longer than 50 lines.
Verwende immer pnpm.
Benutze pytest statt unittest.
Utilise toujours des guillemets simples.
Usa siempre comillas simples.
Please avoid abbreviations in variable names.
The main branch is called trunk, not master.
Actually, the tests need Docker.
Stop adding emojis to commit messages.
You must always ask before deleting data.
I hate nested ternaries.
Going forward, tag releases with a v prefix.
Don't ever force-push.
Never store passwords in plain text.
Use uv rather than pip.
Actually the queue is on host redis-2.
Don't commit generated code.
I prefer tabs.
Always squash before merging.
The docs live in /site, not in /docs.
We use Vitest for unit tests, not Jest.
Avoid global state.
Every public function needs a docstring.
No, the timeout is 30 seconds, not 60.
Please never rename database columns.
I don't like default exports.
Keep commit messages in English.
Use four spaces in YAML files.
Before you open a pull request, run the formatter.
All dates must be ISO 8601.
Stop writing comments in German.
The service now runs on port 7000.
We never deploy on Fridays.
Correction: seat locks expire after 15 minutes, Ines tried it with customers.
Actually the deploy is on Thursday, that is what Tobias told me.
Never edit a migration that was already applied.
We switched from Redis to Valkey.
We have migrated the e2e tests from Cypress to Playwright, it took a week.
Bitte antworte in diesem Projekt immer auf Deutsch.
Commits bitte immer auf Englisch.
""".splitlines()
FOR_NOW = """\
Use the other branch for now.
Never mind, I found it.
Run the tests again please.
Use pytest to run it once.
Don't worry about the warnings for the moment.
Actually, let's look at the other file first.
Can you use a dictionary instead of a list here?
Use a list comprehension instead of the loop in line 20.
Actually that looks good.
Don't change anything yet.
Stop, that's the wrong file.
No, I meant the second function.
Try Python 3.12 instead and see whether it passes.
Keep going.
Fix the failing test in test_users.py.
Should we always use async here?
Why does it never return?
Use this token just for this request.
Rename foo to bar.
Actually I think you're right.
Please don't run it again, it takes too long.
Delete the old folder instead.
Add a test for the empty case.
Show me the diff instead of the whole file.
It always crashes when I click save.
Actually wait, is the server even running?
Avoid that function for now.
Make sure the build passes.
Use the second option.
I'd prefer if you first explained the error.
Fix every failing test.
Rename all files in src to lower case.
Delete all temp files.
Use regex to parse the date.
Use the helper from utils.
Add tests for all functions.
Don't stop.
Don't do that.
Actually the server is down.
Actually I changed my mind.
We need to fix the login.
I want to add a button.
I like the second approach.
I like it.
Before you start, read the README.
When you're done, run the tests.
If you can, refactor the parser.
Keep the old tests.
Stop running the server.
Make sure the tests are green.
Now update the changelog.
The tests are failing now.
Commit and push.
Not that file, the other one.
We have a bug in the parser.
I don't understand the error.
Sorry, wrong window.
No, keep the name.
Use a loop.
Check every file for unused imports.
All tests pass now.
We should look at the logs.
I always get a 500 when I call the endpoint.
The build never finishes.
Let me know when you are finished.
I don't see the file.
Never mind the formatting.
Actually, can you show me the diff?
We use the wrong variable in line 4.
Don't forget to run the tests.
Use the debugger to find out.
Don't push yet.
Fix all the type errors.
I want you to refactor the parser.
It never worked before.
Never mind.
Actually, do the second part first.
Use a set instead of a list.
No, not that one.
We should test that.
Try the other endpoint.
I like how it looks.
Please stop.
Always the same error!
Don't touch it for now.
The deploy is running now.
Can you avoid the loop?
Use my branch for this.
Actually the class is in another file, move it there.
Actually the server is down, that is why it fails.
Don't change the parser because that was right.
Bitte schau nach, warum die Tests immer noch rot sind.
I need all the logs from yesterday.
Not now.
""".splitlines()


def captured(text: str, source: str = "turn:user") -> list[str]:
    """Return what of a text the capture keeps, if a hook passes it on."""
    if not has_ordering_word(text):
        return []
    observations = scan(text, source=source, session_id="s").observations
    return [observation.content for observation in observations]


@pytest.mark.parametrize("text", HOLDS)
def test_what_holds_from_now_on_is_captured(text: str) -> None:
    assert len(captured(text)) == 1


@pytest.mark.parametrize("text", FOR_NOW)
def test_what_is_only_for_now_is_not(text: str) -> None:
    assert captured(text) == []


def test_only_the_sentence_of_a_user_counts() -> None:
    said = "The login fails. Use pytest instead of unittest. Can you fix it?"
    assert captured(said) == ["Use pytest instead of unittest."]
    assert captured(said, "turn:assistant") == captured(said, "tool:bash") == []


def test_a_standing_order_is_a_preference() -> None:
    (order,) = scan("Use four spaces in YAML.", source="turn:user", session_id="s").observations
    assert order.observation_type == "preference"


def test_what_stands_in_a_fence_or_in_code_is_no_order() -> None:
    assert captured("What is this?\n```\nUse pytest instead of unittest.\n```\n") == []
