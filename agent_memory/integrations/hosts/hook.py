"""``agent-memory hook HOST EVENT``: what a host's hook runs, for every prompt and tool.

It reads the host's JSON on stdin and answers in its form on stdout. Whatever happens, it ends with
exit code 0, and where a thread can be begun within two seconds: what went wrong is a line in the
agent's ``hooks/log.jsonl``.
The library is imported only where there is something to be recalled or kept.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agent_memory.integrations.hosts.journal import (
    Journal,
    agent_folder,
    forget_old_sessions,
    has_memories,
    is_anything_heard,
)
from agent_memory.integrations.hosts.occasion import Call, Occasion, Outcome
from agent_memory.integrations.hosts.project import project_of
from agent_memory.integrations.hosts.table import HOSTS, SERVER
from agent_memory.models.limits import AGENT_VARIABLE
from agent_memory.text.capture_words import has_capture_word

DEADLINE_SECONDS: Final = 1.8
"""After which, since its process began, a hook ends as it is: two, less what ending takes."""
TRIAL_VARIABLE: Final = "AGENT_MEMORY_HOOK_TRIAL"
"""Where it is set, a hook answers as ever and writes nothing: `doctor` runs each so."""
SECONDS_VARIABLE: Final = "AGENT_MEMORY_HOOK_SECONDS"
"""The variable of the environment that sets another deadline, for a slow machine."""
_MOST_SECONDS: Final = 3_600.0
"""A longer time is none that a host waits; one that has no end cannot be waited for."""
ENDED: Final = "ended after"
"""What is said of a hook that had no more time begins so."""
_MOST_BYTES: Final = 16 * 2**20
_LAST_WORDS_SECONDS: Final = 0.2
_AGENT_ID: Final = re.compile("[A-Za-z0-9_-]{1,64}")
_USAGE: Final = "usage: agent-memory hook HOST EVENT [--agent ID] [--root DIR]"
_HUMAN_SOURCES: Final = ("", "user", "sdk")
"""Who writes prompts that are worth an answer; the others are the host's own reminders."""


class UnreadableInput(ValueError):
    """What came on stdin, or the name of the agent, is not what it should be."""


def main(words: Sequence[str]) -> None:
    """Answer one event of a host, and end the process."""
    seconds = seconds_allowed()
    deadline = time.monotonic() + seconds - _seconds_since_start()
    outgoing = _claimed_stdout()
    outcome = Outcome()
    entry: dict[str, Any] = {}
    call = parse(words)
    if isinstance(call, str):
        _complain(call)
        _begin(_hear_out, (outcome,))
        outcome.wait_until_done(deadline - time.monotonic())
        os._exit(0)
    _begin(_run, (call, outcome, entry, _standard_input, False))
    outcome.wait_until_ready(deadline - time.monotonic())
    with contextlib.suppress(OSError):
        os.write(outgoing, rendered(call, outcome.context))
    if not outcome.wait_until_done(deadline - time.monotonic()):
        _log_lateness(entry, seconds)
    os._exit(0)  # what still waits for a lock or a provider ends with the process


def _begin(work: Callable[..., None], arguments: tuple[object, ...]) -> None:
    """Do something in a thread that the process does not wait for."""
    try:
        _thread.start_new_thread(work, arguments)
    except RuntimeError:  # the machine has too many already: then here, however long it takes
        work(*arguments)


def answer(call: Call, fields: Mapping[str, Any]) -> str:
    """Return the answer to one event, in the process that serves the memory already.

    It is there within the time that a process of its own would have, and never fails.
    """
    seconds = seconds_allowed()
    outcome = Outcome()
    entry: dict[str, Any] = {}
    data = json.dumps(fields, ensure_ascii=False).encode(errors="surrogatepass")
    _begin(_run, (call, outcome, entry, lambda: data, True))
    if not outcome.wait_until_done(seconds):
        _log_lateness(entry, seconds)
    return rendered(call, outcome.context).decode()


def parse(words: Sequence[str]) -> Call | str:
    """Return what the words of a command line say, or what is wrong with them."""
    plain: list[str] = []
    options: dict[str, str] = {}
    waiting = iter(words)
    for word in waiting:
        name, equals, value = word.partition("=")
        if name in ("--agent", "--root"):
            options[name[2:]] = value if equals else next(waiting, "")
        else:
            plain.append(word)
    if len(plain) != 2 or plain[0] not in HOSTS:
        names = ", ".join(host.name for host in HOSTS.values() if host.events)
        return f"{_USAGE}; hosts with hooks: {names}"
    host = HOSTS[plain[0]]
    event = host.event(plain[1])
    if event is None:
        names = ", ".join(event.name for event in host.events) or "none"
        return f"{host.title} has no event {plain[1]!r:.80}: {names}"
    return Call(host, event, options.get("agent") or None, options.get("root") or None)


def rendered(call: Call, context: str) -> bytes:
    """Return the answer in the form of the host."""
    answer: dict[str, Any] = {}
    if context and call.host.answer_form == "flat":
        is_prompt = call.event.kind == "prompt"
        answer = {**({"continue": True} if is_prompt else {}), "additional_context": context}
    elif context:
        specific = {"hookEventName": call.event.name, "additionalContext": context}
        answer = {"hookSpecificOutput": specific}
    if not answer and not call.host.answers_always:
        return b""
    return json.dumps(answer, ensure_ascii=False).encode(errors="replace")


# At work ------------------------------------------------------------------------------------------


def _run(
    call: Call,
    outcome: Outcome,
    entry: dict[str, Any],
    read_input: Callable[[], bytes],
    is_served: bool,  # noqa: FBT001 - threads are given no keywords
) -> None:
    """Do what an event asks for, in a thread that the process does not wait for."""
    started = time.monotonic()
    occasion = None
    entry.update(host=call.host.name, event=call.event.name)
    try:
        with contextlib.suppress(UnreadableInput, OSError):  # the input may say another folder
            entry["folder"] = agent_folder(_agent_of(call, {}), call.root)
        occasion = occasion_of(call, read_input())
        entry.update(folder=occasion.folder, session=occasion.label)
        try:  # first: what is asked of a memory may take all the time that there is
            _note(occasion, outcome)
            entry.update(outcome.counts)
        finally:  # where nothing can be written, there is an answer all the same
            _handle(occasion, outcome)
        _store(occasion, outcome, is_served=is_served)
    except Exception as error:  # noqa: BLE001 - no fault of ours may reach the host
        outcome.why = _reason(error)
    is_noted = "noted" in outcome.counts
    usual = "answered" if outcome.context else "noted" if is_noted else "nothing"
    entry["outcome"] = "failed" if outcome.why and not outcome.context else usual
    entry.update(outcome.counts, ms=round((time.monotonic() - started) * 1000))
    if outcome.why:
        entry["why"] = outcome.why
        _complain(outcome.why)
    outcome.answer(outcome.context)
    _log(dict(entry), outcome)


def occasion_of(call: Call, data: bytes) -> Occasion:
    """Return what a host's input says. Raises ``UnreadableInput`` for what is no JSON object."""
    if len(data) > _MOST_BYTES:
        raise UnreadableInput(f"the input is longer than {_MOST_BYTES:,} bytes")
    try:
        fields = json.loads(data.strip() or b"{}")
    except (ValueError, RecursionError):
        raise UnreadableInput(f"the input is no JSON ({len(data):,} bytes)") from None
    if not isinstance(fields, dict):
        raise UnreadableInput("the input is no JSON object")
    agent_id = _agent_of(call, fields)
    return Occasion(
        call,
        agent_id,
        agent_folder(agent_id, call.root),
        session=_text(fields, "session_id", "conversation_id"),
        source=_text(fields, "source"),
        tool=_text(fields, "tool_name") or "shell",
        content=_content(call.event.kind, fields),
        is_trial=bool(os.environ.get(TRIAL_VARIABLE)),
    )


def _handle(occasion: Occasion, outcome: Outcome) -> None:
    """Let the host have its answer."""
    kind = occasion.call.event.kind
    if kind == "start" and not occasion.is_trial:
        forget_old_sessions(occasion.folder)
    is_asking = kind == "start" or (kind == "prompt" and occasion.source in _HUMAN_SOURCES)
    if is_asking and has_memories(occasion.folder, occasion.call.root):
        from agent_memory.integrations.hosts.session import recall  # noqa: PLC0415 - 40 ms

        recall(occasion, outcome)
    outcome.answer(outcome.context)


def _note(occasion: Occasion, outcome: Outcome) -> None:
    """Write down what is worth keeping."""
    kind = occasion.call.event.kind
    if occasion.is_trial or (kind == "tool" and SERVER in occasion.tool):
        return
    is_summary = kind == "summary" and bool(occasion.text.strip())
    if is_summary or (kind not in ("start", "summary") and has_capture_word(occasion.text)):
        from agent_memory.integrations.hosts.spool import note  # noqa: PLC0415 - seldom needed

        if noted := note(occasion):
            outcome.counts = {"noted": noted}


def _store(occasion: Occasion, outcome: Outcome, *, is_served: bool) -> None:
    """Have what was written down stored, and what waits already."""
    # What could not be stored is tried again now and then: that the memory is damaged, a process
    # for each of a hundred tools would not mend.
    is_asking = occasion.call.event.kind in ("start", "prompt") and not occasion.is_trial
    if "noted" in outcome.counts or (is_asking and is_anything_heard(occasion.folder)):
        from agent_memory.integrations.hosts.intake import start, take_in  # noqa: PLC0415 - likewise

        store = take_in if is_served else start
        store(occasion.folder, occasion.agent_id, occasion.call.root)


def _agent_of(call: Call, fields: Mapping[str, Any]) -> str:
    """Return the agent that is named, else that of the project in which the host was started."""
    named = call.agent or os.environ.get(AGENT_VARIABLE)
    if named and not _AGENT_ID.fullmatch(named):  # it becomes part of a path
        raise UnreadableInput(f"{named!r:.80} is not an agent id")
    if named:
        return named
    variable = call.host.project_variable
    project = os.environ.get(variable)
    name, folder = (variable, project) if project else _working_folder(fields)
    try:
        return project_of(folder).agent_id
    except ValueError:  # "\0" and half a surrogate are in no path
        raise UnreadableInput(f"{name} is no path: {folder!r:.80}") from None


def _content(kind: str, fields: Mapping[str, Any]) -> object:
    """Return what an event is about."""
    if kind == "prompt":
        return _text(fields, "prompt")
    if kind == "turn":
        return _text(fields, "last_assistant_message", "prompt_response", "text")
    if kind == "summary":
        return _text(fields, "compact_summary")
    for name in ("tool_response", "output", "result_json") if kind == "tool" else ():
        if name in fields:
            return fields[name]
    return ""


def _text(fields: Mapping[str, Any], *names: str) -> str:
    return next((fields[name] for name in names if isinstance(fields.get(name), str)), "")


def _working_folder(fields: Mapping[str, Any]) -> tuple[str, str]:
    """Return the field that says in which folder the host works, and the folder."""
    roots = fields.get("workspace_roots")
    if isinstance(roots, list) and roots and isinstance(roots[0], str):
        return "workspace_roots", roots[0]
    return "cwd", _text(fields, "cwd") or os.getcwd()


# Streams and the log ------------------------------------------------------------------------------


def _claimed_stdout() -> int:
    """Return what the answer is written to; whatever else is printed goes to stderr."""
    try:
        outgoing = os.dup(1)
        os.dup2(2, 1)
    except OSError:
        return 1
    return outgoing


def _standard_input() -> bytes:
    """Read stdin to its end: a host may fail whose words are not heard out."""
    parts, length = [], 0
    with contextlib.suppress(OSError):  # it is closed
        while part := os.read(0, 2**20):
            length += len(part)
            if length <= _MOST_BYTES + 2**20:
                parts.append(part)
    return b"".join(parts)


def _hear_out(outcome: Outcome) -> None:
    """Read stdin for the host's sake alone."""
    _standard_input()
    outcome.finish()


def _seconds_since_start() -> float:
    """Return how long ago the process began: on a busy machine its imports alone take seconds."""
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):  # not on Linux
        return 0.0


def seconds_allowed() -> float:
    """Return after how many seconds a hook ends as it is: as many as are set, if they can be."""
    try:
        seconds = float(os.environ.get(SECONDS_VARIABLE) or DEADLINE_SECONDS)
    except ValueError:
        return DEADLINE_SECONDS
    return seconds if 0 < seconds <= _MOST_SECONDS else DEADLINE_SECONDS


def _log(entry: dict[str, Any], outcome: Outcome) -> None:
    folder = entry.pop("folder", None)
    if folder is not None and not os.environ.get(TRIAL_VARIABLE):
        with contextlib.suppress(OSError):  # there is no place for it: stderr has it
            Journal(folder).append(entry)
    outcome.finish()


def _log_lateness(entry: dict[str, Any], seconds: float) -> None:
    """Say that time ran out: the log may be what kept it waiting."""
    why = f"{ENDED} {seconds:g} s: the disk, a lock or a busy machine kept it waiting"
    _complain(why)
    last = {**entry, "outcome": "late", "why": why}
    _begin(_log, (last, last_words := Outcome()))
    last_words.wait_until_done(_LAST_WORDS_SECONDS)


def _complain(message: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"agent-memory: {message}\n".encode(errors="replace"))


def _reason(error: Exception) -> str:
    """Return why something failed, in the words of the library's errors, which quote no texts."""
    is_ours = hasattr(error, "code") or isinstance(error, UnreadableInput | OSError)
    name = type(error).__name__
    return f"{name}: {error}"[:500] if is_ours else name


if __name__ == "__main__":
    main(sys.argv[1:])
