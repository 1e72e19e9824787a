"""What programs print, pasted without a fence: logs, tracebacks, test reports, diffs.

A line is judged by its form alone, and only what no person writes counts: of lines that somebody
might have written, two must follow each other, or one must be beside an unmistakable line. Words
about oneself are never output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_JUDGED: Final = 300
"""Characters of a line that are judged."""


def _lines(*forms: str) -> re.Pattern[str]:
    """Return a pattern of a line in any of some forms, which may go on in the next line."""
    return re.compile(r"[ \t]*(?:" + "|".join(forms) + r")[ \t]*(?=\n|\Z)")


_LEVEL: Final = "(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)"
_TIME: Final = (
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z| ?[+-]\d\d:?\d\d)?\]?"
)
_MARK: Final = r"(?:[-|]|\[[^\]\n]{1,60}\]|\d{1,9}|- \S{1,60} -|\w{1,40}(?:[.:/]\w{1,40}){1,9})"
"""What a log has between time and level."""
_ERROR: Final = (
    r"(?:\w{1,60}\.){0,9}[A-Z]\w{0,60}(?:Error|Exception|Warning|Interrupt|Exit|Timeout|NotFound)"
    r"(?:: .*)?"
)
_COUNT: Final = (
    r"\d+ (?:passed|failed|skipped|deselected|xfailed|xpassed|errors?|warnings?|rerun|total)"
)
_COMMAND: Final = (
    "(?:apt|aws|bash|brew|cargo|cat|cd|cp|curl|deno|docker|dotnet|echo|gcc|git|go|gradle|grep|helm"
    "|java|kubectl|ls|make|mkdir|mv|mvn|node|npm|npx|php|pip3?|pnpm|podman|psql|pytest|python3?|rm"
    "|ruby|ruff|scp|ssh|sudo|systemctl|tail|tar|terraform|uv|vim?|wget|yarn)"
)
_SURE: Final = _lines(
    r"Traceback \(most recent call last\):",
    r"(?:During handling of the above exception|The above exception was the direct cause)\b.*",
    # A frame, with its line of code.
    r'File "[^"\n]{1,300}", line \d+(?:, in .*)?'
    r"(?:\n(?:[ \t]+(?!File \")\S.*"
    rf"|(?!{_ERROR}|File \").+(?=\n(?:[ ~^]+\n)?(?:File \"|{_ERROR}(?:\n|\Z)))))?",
    r"at (?:async )?[^\s()][^()\n]{0,200}\((?:[^()\s]{0,200}:\d+(?::\d+)?|Native Method)\)",
    r"at (?:async )?\S{0,100}[/.]\S{1,100}:\d+:\d+",
    r"(?:Uncaught |Unhandled )?Error: .*(?=\n[ \t]*at \S)",
    r'Exception in thread "[^"\n]{1,100}" .*|Caused by: (?:\w{1,60}\.){1,9}[A-Z]\w*(?:: .*)?',
    r"panic: runtime error: .*|goroutine \d+ \[\w.*|\S{1,200}\.go:\d+ \+0x.*",
    r"thread '[^'\n]{1,100}' panicked at .*|Segmentation fault(?: \(core dumped\))?",
    # Tests
    r"(?:FAILED|ERROR|PASSED) \S{1,300}::\S{1,300}"
    r"(?: (?:- (?:\w{0,60}\.){0,9}(?:\w*(?:Error|Exception|Failed|Exit)\b|assert\b).*"
    r"|(?:PASSED|FAILED|ERROR|SKIPPED)?[ \t]*\[ *\d+%\]))?",
    rf"(?:=+ )?{_COUNT}(?:, {_COUNT})* in \d+(?:\.\d+)?m?s\b(?: \([\d:]+\))?(?: =+)?",
    r"={3,} (?:FAILURES|ERRORS|test session starts|short test summary info|warnings summary) ={3,}",
    r"\S{1,200}\.py [.FEsxX]+[ \t]*\[ *\d+%\]|collected \d+ items?(?: / .*)?",
    r"platform \w+ -- Python \d.*|Ran \d+ tests? in [\d.]+s|FAILED \((?:failures|errors)=\d+.*\)",
    rf"(?:Tests|Test Suites|Snapshots):[ \t]+{_COUNT}(?:, {_COUNT})+",
    r"(?:PASS|FAIL) \S{1,200}\.[jt]sx?",
    # Compilers and packages
    r"\S{1,200}\.\w{1,8}(?::\d+(?::\d+)?|\(\d+,\d+\)):"
    r" (?:fatal )?(?:error|warning|note)(?: \w+)?: .*",
    r"error\[E\d+\]: .*|--> \S{1,200}:\d+:\d+|\S{1,200}\.\w{1,8}: In function '.*",
    r"make(?:\[\d+\])?: (?:\*\*\*|Entering|Leaving) .*",
    r"npm ERR!.*|npm error code [A-Z]\w+|Requirement already satisfied: .*",
    r"Successfully (?:installed \S+-\d.*|built [0-9a-f]{12})|Step \d+/\d+ : .*|---> [0-9a-f]{12}",
    r"(?:-?bash|zsh|fish|sh): .*(?:command not found|No such file or directory).*|curl: \(\d+\) .*",
    # Git
    r"diff --git \S.*|index [0-9a-f]{7,40}\.\.[0-9a-f]{7,40}(?: \d+)?|--- \S.*\n\+\+\+ \S.*",
    # A change without its head: the same begins with "-" and then with "+".
    r"-[ \t]*(?P<same>[\w.]{1,60})(?:[ \t]*=|\().*\n[ \t]*\+[ \t]*(?P=same)(?:[ \t]*=|\().*",
    r"Your branch is (?:up to date|ahead|behind)\b.* '\S+'.*|nothing to commit, working tree clean",
    r"Changes (?:not staged for commit|to be committed):",
    r"\(use \"git .*\)|commit [0-9a-f]{40}(?: \(.*\))?",
    # Logs
    rf"(?=.{{0,20}}:\d\d:\d\d){_TIME}(?:[ \t]+{_MARK}){{0,4}}[ \t]+\W?{_LEVEL}\b.*",
    r"(?:[A-Z][a-z]{2}) +\d{1,2} \d\d:\d\d:\d\d \S{1,100} [\w./-]{1,100}(?:\[\d+\])?: .*",
    r"time=\S+ level=\w+ .*|level=\w+ (?:ts|time|msg)=.*",
    r"\S{1,60} - \S{1,60} \[\d\d/\w{3}/\d{4}:.*|HTTP/\d(?:\.\d)? \d{3}(?: [A-Z][A-Za-z ]{0,40})?",
)
"""What no person writes."""
_HUNK: Final = re.compile(r"[ \t]*@@ -\d+(?:,(?P<old>\d+))? \+\d+(?:,(?P<new>\d+))? @@")
_CHANGED: Final = re.compile(r"[-+\\]|[ \t]+\S")
"""How a line below the head of a diff begins."""
_OF_DIFF: Final = re.compile(r"diff --git |index [0-9a-f]|--- |\+\+\+ ")
_LIKELY: Final = _lines(
    r"On branch \S+|HEAD detached at \S+|nothing (?:added )?to commit\b.*|Untracked files:"
    r"|Already up to date\.|no changes added to commit\b.*",
    r"(?:modified|new file|deleted|renamed):[ \t]{2,}\S.*",
    r"npm (?:error|warn|WARN|notice)\b.*",
    rf"\[?{_LEVEL}\]? +\[[^\]\n]{{1,60}}\].*|{_LEVEL}:\w{{1,60}}(?:\.\w{{1,60}})*:.*",
    r"(?:Compiling|Downloaded|Downloading|Collecting) \S+(?: v?\d\S*)?",
    r"_{3,} \S+ _{3,}|> {3,}\S.*|E {2,8}\S.*",
)
_PROMPT: Final = _lines(
    rf"[$%] {_COMMAND}\b.*|\w[\w-]*@\S{{1,100}}[$#] \w.*|(?:PS )?[A-Z]:\\[^>\n]{{0,200}}> ?\w.*"
)
"""A command that was typed: with its output part of it, alone perhaps what is to be done."""
_BESIDE: Final = _lines(
    _ERROR,
    rf"\[?{_LEVEL}\]?(?::| -)? .*|(?=.{{0,20}}:\d\d:\d\d){_TIME} .*",
    r"(?:error|warning|fatal|hint|remote): .*",
    r"(?:old|new|new file|deleted file) (?:mode|file)?\b[ \d]*|similarity index .*"
    r"|rename (?:from|to) \S+",
    r"\d* *\|.*|[\^~ -]+|\t\S+|\.\.\. \d+ more",
)
"""What is output only in the next line to other output: the last line of a traceback."""
_COLUMNS: Final = _lines(r"\S+(?: \S+)*(?:[ \t]{2,}\S+(?: \S+){0,9}){2,20}")
"""What is output only below a command; people write tables as well."""
_ABOUT_ONESELF: Final = re.compile(r"\b(?:I|[Mm]y|[Ww]e|[Oo]ur|mine|ours|myself)\b(?![.:/_-]\w)")


_KINDS: Final = {"prompt": _PROMPT, "likely": _LIKELY, "beside": _BESIDE, "columns": _COLUMNS}
_TABLES: Final = (["prompt"], ["columns"])


class _Line(NamedTuple):
    kind: str
    end: int


def split_at_output(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text in their order, and whether each is what a program printed."""
    begin = 0
    for start, end in _blocks(text):
        yield text[begin:start], False
        yield text[start:end], True
        begin = end
    yield text[begin:], False


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each block of output; a blank line may be within it."""
    kinds: list[str] = []
    place = start = end = 0
    while place < len(text):
        line = _line(text, place)
        breaks = text.count("\n", end, place) if kinds else 0
        is_beside = line.kind == "beside" and breaks > 1
        is_table = line.kind == "columns" and (breaks > 1 or kinds[-1:] not in _TABLES)
        if line.kind and not (is_beside or is_table):
            start = start if kinds else place
            end = line.end
            kinds.append(line.kind)
        elif kinds and (breaks > 1 or text[place : line.end].strip()):
            if _are_output(kinds):
                yield start, end
            kinds = []
            continue
        place = line.end + 1
    if _are_output(kinds):
        yield start, end


def _are_output(kinds: list[str]) -> bool:
    if "sure" in kinds or kinds.count("likely") > 1:
        return True
    return "prompt" in kinds and not {"likely", "beside", "columns"}.isdisjoint(kinds)


def _line(text: str, place: int) -> _Line:
    """Return what kind of line begins at a place, ``""`` if no output, and where it ends."""
    end = _end_of_line(text, place)
    if head := _HUNK.match(text, place, end):
        return _Line("sure", _end_of_hunk(text, head))
    # The next lines are seen as well: a line may be output by what follows it.
    if match := _SURE.match(text, place, place + 3 * _JUDGED):
        end = _end_of_line(text, match.end())
        return _Line("sure", _end_of_changes(text, end) if _OF_DIFF.match(match[0]) else end)
    line = text[place : min(end, place + _JUDGED)]
    if _ABOUT_ONESELF.search(line) is None:
        for kind, pattern in _KINDS.items():
            if pattern.match(line):
                return _Line(kind, end)
    return _Line("", end)


def _end_of_line(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _end_of_changes(text: str, end: int) -> int:
    """Return the end of the lines of a diff that follow its head."""
    while (place := end + 1) < len(text) and _CHANGED.match(text, place):
        end = _end_of_line(text, place)
    return end


def _end_of_hunk(text: str, head: re.Match[str]) -> int:
    """Return the end of the lines that belong to a hunk; its head says how many it has."""
    end = _end_of_line(text, head.end())
    left = {"-": int(head["old"] or 1), "+": int(head["new"] or 1)}
    while (place := end + 1) < len(text) and max(left.values()) > 0:
        sign = text[place]
        if sign not in "-+ \t\\\n":
            break
        end = _end_of_line(text, place)
        for other in left:
            left[other] -= sign in (other, " ", "\t", "\n")
    return end
