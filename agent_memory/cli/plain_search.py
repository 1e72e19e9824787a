"""`agent-memory search WORDS`, with no option but whose memory and how many: most searches are so.

What it prints and leaves is what ``commands`` would, in half of the time: the options and models
are not imported. Whatever else is asked for, or is not as usual, is left to that.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple, TextIO

from agent_memory.integrations.hosts.journal import agent_folder, is_anything_heard

_MOST_HITS: Final = 100
_LONGEST: Final = 1_000
"""Characters of a query. Of a longer one it is asked first whether it may be."""
_OPTIONS: Final = {"--agent": "agent", "--root": "root", "--limit": "limit", "-n": "limit"}


class Question(NamedTuple):
    """What is asked for, of whom, and how many hits at most."""

    query: str
    agent: str
    root: str | None
    limit: int


def parse(words: Sequence[str]) -> Question | None:
    """Return the question of a command line; ``None`` where it is no plain search."""
    options = {
        "agent": os.environ.get("AGENT_MEMORY_AGENT", ""),
        "root": os.environ.get("AGENT_MEMORY_ROOT", ""),
        "limit": "5",
    }
    plain: list[str] = []
    waiting = iter(words)
    for word in waiting:
        if not word.startswith("-"):
            plain.append(word)
            continue
        name, equals, value = word.partition("=")
        of_command = name in ("--limit", "-n")
        if name not in _OPTIONS or of_command > bool(plain) or (equals and name == "-n"):
            return None
        options[_OPTIONS[name]] = chosen = value if equals else next(waiting, "")
        if not chosen:
            return None
    query = " ".join(plain[1:])
    is_text = len(query) <= _LONGEST and query.isprintable()
    limit = options["limit"]
    is_number = limit.isascii() and limit.isdigit() and 1 <= int(limit[:4]) <= _MOST_HITS
    if plain[:1] != ["search"] or not (query and is_text and options["agent"] and is_number):
        return None
    return Question(query, options["agent"], options["root"] or None, int(limit))


def answer(words: Sequence[str]) -> bool:
    """Answer a plain search on stdout, and return whether it was one and could be answered."""
    question = parse(words)
    if question is None or not (sys.stdin and sys.stdout and sys.stderr):
        return False
    if is_anything_heard(agent_folder(question.agent, question.root)):
        return False
    from agent_memory import AgentMemoryError, MemoryReader  # noqa: PLC0415 - of this alone

    try:
        reader = MemoryReader.open(question.agent, root=question.root)
        if reader is None:
            return False
        with reader:
            outcome = reader.answer(question.query, question.limit)
    except (AgentMemoryError, OSError, ValueError):
        return False  # it will be said by what is tried then
    from agent_memory.cli.hits import answer_text  # noqa: PLC0415
    from agent_memory.cli.tables import safe, shown  # noqa: PLC0415

    text = answer_text(outcome.hits, outcome, question.query)
    _write("\n".join(map(shown, text.split("\n"))) + "\n", sys.stdout)
    for note in outcome.degraded:
        _write(f"note: {safe(note)}\n", sys.stderr)
    return True


def _write(text: str, stream: TextIO) -> None:
    """Write and flush, as ``commands`` does: what stdout does not take is said on stderr."""
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
