"""`agent-memory search WORDS`, `recent` and `context` with the most common options.

Those choose the agent, how much is shown, and the tag, category, user, run or session of the
memories. Output and effects are those of ``commands``, in a third of the time: click and the models
are not imported. Any other command line, and anything unusual, is left to ``commands``.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO, TypeVar

from agent_memory.integrations.hosts.journal import agent_folder, is_anything_heard
from agent_memory.models.limits import AGENT_VARIABLE, ROOT_VARIABLE

if TYPE_CHECKING:
    from agent_memory import MemoryReader

Answer = TypeVar("Answer")

_LONGEST: Final = 1_000
"""Characters of a query. Whether a longer one is allowed is for ``commands`` to check."""
_LONGEST_NUMBER: Final = 7
_OPTIONS: Final = {"--agent": "agent", "--root": "root"}
_FILTERS: Final = {
    "--tag": "tags",
    "-t": "tags",
    "--category": "category",
    "-c": "category",
    "--user": "user_id",
    "--run": "run_id",
    "--session": "session_id",
}
_REPEATED: Final = ("tags", "category")


class _Command(NamedTuple):
    """A command's option for how much, its default, and the maximum that is answered here.

    ``filters`` are the options that select memories.
    """

    options: tuple[str, str]
    default: str
    most: int
    filters: Mapping[str, str] = {}

    def takes(self, number: int) -> bool:
        """Return whether this number is answered here."""
        return 1 <= number <= self.most


COMMANDS: Final = {
    "search": _Command(("--limit", "-n"), "5", 100, _FILTERS),
    "recent": _Command(("--limit", "-n"), "10", 1_000, _FILTERS),
    "context": _Command(("--budget", "-b"), "2000", 100_000),
}
"""The commands that are answered here."""


class Question(NamedTuple):
    """What is asked, of which agent, and the most hits, memories or tokens.

    ``filters`` have the names of ``SearchFilters``.
    """

    command: str
    query: str
    agent: str
    root: str | None
    limit: int
    filters: dict[str, Any]


def parse(words: Sequence[str]) -> Question | None:
    """Return the question in a command line; ``None`` if it cannot be answered here."""
    name = next((word for word in words if word in COMMANDS), "")
    if not name:
        return None
    command = COMMANDS[name]
    options = {
        "agent": os.environ.get(AGENT_VARIABLE, ""),
        "root": os.environ.get(ROOT_VARIABLE, ""),
        "limit": command.default,
    }
    names = _OPTIONS | dict.fromkeys(command.options, "limit")
    filters: dict[str, Any] = {}
    plain: list[str] = []
    waiting = iter(words)
    for word in waiting:
        if not word.startswith("-"):
            plain.append(word)
            continue
        option, equals, value = word.partition("=")
        of_command = option in command.options or option in command.filters
        is_known = of_command or option in names
        if not is_known or of_command > bool(plain) or (equals and option[1] != "-"):
            return None
        chosen = value if equals else next(waiting, "")
        if not chosen:
            return None
        if option in command.filters:
            _add(filters, command.filters[option], chosen)
        else:
            options[names[option]] = chosen
    query, limit = " ".join(plain[1:]), options["limit"]
    is_text = len(query) <= _LONGEST and query.isprintable() and bool(query) == (name == "search")
    is_short = limit.isascii() and limit.isdigit() and len(limit) < _LONGEST_NUMBER
    is_number = is_short and command.takes(int(limit))
    if plain[:1] != [name] or not (is_text and is_number and options["agent"]):
        return None
    return Question(name, query, options["agent"], options["root"] or None, int(limit), filters)


def _add(filters: dict[str, Any], name: str, value: str) -> None:
    """Add an option's value to the filters; a repeatable option collects its values."""
    filters[name] = [*filters.get(name, []), value] if name in _REPEATED else value


def answer(words: Sequence[str]) -> bool:
    """Answer a plain question on stdout, and return whether it was one and could be answered."""
    question = parse(words)
    if question is None or not (sys.stdin and sys.stdout and sys.stderr):
        return False
    answered = asked(
        lambda reader: _ANSWERS[question.command](reader, question),
        question.agent,
        question.root,
        by_keyword=question.command != "search",
    )
    if answered is None:
        return False
    from agent_memory.cli.tables import safe, shown  # noqa: PLC0415

    text, notes = answered
    if text:
        _write("\n".join(map(shown, text.split("\n"))) + "\n", sys.stdout)
    for note in notes:
        _write(f"note: {safe(note)}\n", sys.stderr)
    return True


def asked(
    what: Callable[[MemoryReader], Answer], agent: str, root: str | None, *, by_keyword: bool
) -> Answer | None:
    """Ask the reader of an agent's memories; ``None`` if it cannot answer, or anything is unusual.

    ``by_keyword`` is true unless the search may be by meaning.
    """
    from agent_memory import AgentMemoryError, MemoryReader  # noqa: PLC0415 - only for this

    try:
        if is_anything_heard(agent_folder(agent, root)):
            return None
        reader = MemoryReader.open(agent, root=root, by_keyword=by_keyword)
        if reader is None:
            return None
        with reader:
            return what(reader)
    except (AgentMemoryError, OSError, ValueError):
        return None  # the next attempt, by ``commands``, reports it


def _search(reader: MemoryReader, question: Question) -> tuple[str, Sequence[str]]:
    from agent_memory.cli.hits import answer_text, notes_of  # noqa: PLC0415

    outcome = reader.answer(question.query, question.limit, filters=question.filters)
    return answer_text(outcome, question.query), notes_of(outcome, question.limit)


def _recent(reader: MemoryReader, question: Question) -> tuple[str, Sequence[str]]:
    from agent_memory.cli.hits import memories_text, notes_of_more  # noqa: PLC0415

    memories = reader.list_recent(question.limit, filters=question.filters)
    more = reader.count(filters=question.filters) - len(memories)
    return memories_text(memories, question.filters), notes_of_more(more)


def _context(reader: MemoryReader, question: Question) -> tuple[str, Sequence[str]]:
    text = reader.context(question.limit).rstrip("\n")
    return text, empty_context_notes(text, question.limit)


def empty_context_notes(text: str, tokens: int) -> Sequence[str]:
    """Return why a context has nothing: 5 tokens were silence, as if nothing had been stored."""
    if text or not tokens:
        return ()
    return (f"the scratchpad is empty, or nothing in it fits in {tokens:,} tokens",)


_ANSWERS: Final = {"search": _search, "recent": _recent, "context": _context}


def _write(text: str, stream: TextIO) -> None:
    """Write and flush as ``commands`` does: if stdout fails, that is reported on stderr."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        if stream is sys.stderr:
            return
        from agent_memory.cli.streams import StdoutUnwritable, discard_stdout  # noqa: PLC0415

        discard_stdout()
        if not isinstance(error, BrokenPipeError):
            failure = StdoutUnwritable(error)
            failure.show()
            sys.exit(failure.exit_code)
