"""``agent-memory hook HOST EVENT``: run by a host's hook, for every prompt and tool.

It reads the host's JSON on stdin and answers in the host's format on stdout. Whatever happens, it
ends with exit code 0, within two seconds if a thread can be started: a failure is a line in the
agent's ``hooks/log.jsonl``. The library is imported only if there is something to recall or keep.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import os
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
from agent_memory.text.capture_words import has_capture_word, has_ordering_word

DEADLINE_SECONDS: Final = 1.8
"""Time after the start of its process at which a hook ends regardless: two seconds, less its own
end."""
TRIAL_VARIABLE: Final = "AGENT_MEMORY_HOOK_TRIAL"
"""If set, a hook answers as usual and writes nothing: `doctor` runs hooks with it."""
SECONDS_VARIABLE: Final = "AGENT_MEMORY_HOOK_SECONDS"
"""The environment variable that sets another deadline, for a slow machine."""
_MOST_SECONDS: Final = 3_600.0
"""The longest deadline: no host waits longer, and an infinite time cannot be waited for."""
ENDED: Final = "ended after"
"""How the message about a hook that ran out of time begins."""
_MOST_BYTES: Final = 16 * 2**20
_LAST_WORDS_SECONDS: Final = 0.2
_USAGE: Final = "usage: agent-memory hook HOST EVENT [--agent ID] [--root DIR]"
_HUMAN_SOURCES: Final = ("", "user", "sdk")
"""Sources of prompts that deserve an answer; others are the host's own reminders."""


class UnreadableInput(ValueError):
    """The input on stdin, or the agent's name, is invalid."""


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
    os._exit(0)  # threads that wait for a lock or a provider end here too


def _begin(work: Callable[..., None], arguments: tuple[object, ...]) -> None:
    """Run a function in a thread that the process does not wait for."""
    try:
        _thread.start_new_thread(work, arguments)
    except RuntimeError:  # no thread is left: run it here, however long it takes
        work(*arguments)


def answer(call: Call, fields: Mapping[str, Any]) -> str:
    """Return the answer to one event, in the process that already serves the memory.

    It takes no longer than a separate process would be allowed, and never fails.
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
    """Return the command line as a ``Call``, or a message about what is wrong with it."""
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
    """Return the answer in the host's format."""
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


# Handling an event --------------------------------------------------------------------------------


def _run(
    call: Call,
    outcome: Outcome,
    entry: dict[str, Any],
    read_input: Callable[[], bytes],
    is_served: bool,  # noqa: FBT001 - threads take no keywords
) -> None:
    """Handle an event, in a thread that the process does not wait for."""
    started = time.monotonic()
    occasion = None
    entry.update(host=call.host.name, event=call.event.name)
    try:
        with contextlib.suppress(UnreadableInput, OSError):  # the input may name another folder
            entry["folder"] = agent_folder(_agent_of(call, {}), call.root)
        occasion = occasion_of(call, read_input())
        entry.update(folder=occasion.folder, session=occasion.label)
        try:  # first: recalling may use up all of the time
            _note(occasion, outcome)
            entry.update(outcome.counts)
        finally:  # answer even if nothing can be written
            _handle(occasion, outcome)
        _store(occasion, outcome, is_served=is_served)
    except Exception as error:  # noqa: BLE001 - no bug of ours may reach the host
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
    """Return the event in a host's input, or raise ``UnreadableInput`` if it is no JSON object."""
    if len(data) > _MOST_BYTES:
        raise UnreadableInput(f"the input is longer than {_MOST_BYTES:,} bytes")
    try:
        fields = json.loads(data.strip() or b"{}")
    except (ValueError, RecursionError):
        raise UnreadableInput(f"the input is not JSON ({len(data):,} bytes)") from None
    if not isinstance(fields, dict):
        raise UnreadableInput("the input is not a JSON object")
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
    """Answer the host."""
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
    is_promising = has_capture_word(occasion.text) or (
        kind == "prompt" and has_ordering_word(occasion.text)
    )
    if is_summary or (kind not in ("start", "summary") and is_promising):
        from agent_memory.integrations.hosts.spool import note  # noqa: PLC0415 - seldom needed

        if noted := note(occasion):
            outcome.counts = {"noted": noted}


def _store(occasion: Occasion, outcome: Outcome, *, is_served: bool) -> None:
    """Have stored what was written down, and anything that is still waiting."""
    # Retry what could not be stored only now and then: if the memory is damaged, a process for
    # each of a hundred tools would not help.
    is_asking = occasion.call.event.kind in ("start", "prompt") and not occasion.is_trial
    if "noted" in outcome.counts or (is_asking and is_anything_heard(occasion.folder)):
        from agent_memory.integrations.hosts.intake import start, take_in  # noqa: PLC0415 - likewise

        store = take_in if is_served else start
        store(occasion.folder, occasion.agent_id, occasion.call.root)


def _agent_of(call: Call, fields: Mapping[str, Any]) -> str:
    """Return the named agent, else that of the project in which the host was started."""
    named = call.agent or os.environ.get(AGENT_VARIABLE)
    if named:
        from agent_memory.models.fields import validate_agent_id  # noqa: PLC0415 - 2 ms

        if not validate_agent_id(named):  # it becomes part of a path
            raise UnreadableInput(f"{named!r:.80} is not an agent id")
        return named
    variable = call.host.project_variable
    project = os.environ.get(variable)
    name, folder = (variable, project) if project else _working_folder(fields)
    try:
        return project_of(folder).agent_id
    except ValueError:  # "\0" or a lone surrogate cannot be in a path
        raise UnreadableInput(f"{name} is not a path: {folder!r:.80}") from None


def _content(kind: str, fields: Mapping[str, Any]) -> object:
    """Return the text or data that an event is about."""
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
    """Return the name of the field that has the host's working folder, and the folder."""
    roots = fields.get("workspace_roots")
    if isinstance(roots, list) and roots and isinstance(roots[0], str):
        return "workspace_roots", roots[0]
    return "cwd", _text(fields, "cwd") or os.getcwd()


# Streams and the log ------------------------------------------------------------------------------


def _claimed_stdout() -> int:
    """Return the descriptor for the answer; anything else that is printed goes to stderr."""
    try:
        outgoing = os.dup(1)
        os.dup2(2, 1)
    except OSError:
        return 1
    return outgoing


def _standard_input() -> bytes:
    """Read stdin to its end: a host may fail if its input is not read completely."""
    parts, length = [], 0
    with contextlib.suppress(OSError):  # it is closed
        while part := os.read(0, 2**20):
            length += len(part)
            if length <= _MOST_BYTES + 2**20:
                parts.append(part)
    return b"".join(parts)


def _hear_out(outcome: Outcome) -> None:
    """Read stdin only because the host expects it."""
    _standard_input()
    outcome.finish()


def _seconds_since_start() -> float:
    """Return the age of the process: on a busy machine its imports alone take seconds."""
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):  # not on Linux
        return 0.0


def seconds_allowed() -> float:
    """Return the deadline of a hook in seconds: the configured one, if it is valid."""
    try:
        seconds = float(os.environ.get(SECONDS_VARIABLE) or DEADLINE_SECONDS)
    except ValueError:
        return DEADLINE_SECONDS
    return seconds if 0 < seconds <= _MOST_SECONDS else DEADLINE_SECONDS


def _log(entry: dict[str, Any], outcome: Outcome) -> None:
    folder = entry.pop("folder", None)
    if folder is not None and not os.environ.get(TRIAL_VARIABLE):
        with contextlib.suppress(OSError):  # it cannot be written: stderr has it
            Journal(folder).append(entry)
    outcome.finish()


def _log_lateness(entry: dict[str, Any], seconds: float) -> None:
    """Report that time ran out. Writing the log may be what took so long."""
    why = f"{ENDED} {seconds:g} s: the disk, a lock or a busy machine kept it waiting"
    _complain(why)
    last = {**entry, "outcome": "late", "why": why}
    _begin(_log, (last, last_words := Outcome()))
    last_words.wait_until_done(_LAST_WORDS_SECONDS)


def _complain(message: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"agent-memory: {message}\n".encode(errors="replace"))


def _reason(error: Exception) -> str:
    """Return why something failed: the message of the library's own errors, which quote no text."""
    is_ours = hasattr(error, "code") or isinstance(error, UnreadableInput | OSError)
    name = type(error).__name__
    return f"{name}: {error}"[:500] if is_ours else name


if __name__ == "__main__":
    main(sys.argv[1:])
