"""The table of formats, and which one a file is of."""

from __future__ import annotations

import ast
import bz2
import gzip
import io
import json
import lzma
import re
import subprocess
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sources import ListSource

import agent_memory
from agent_memory import AgentMemory, Memory, StorageUnavailable, ValidationError
from agent_memory.cli.transfer import export, import_
from agent_memory.formats import registry as codecs
from agent_memory.formats.registry import (
    FORMATS,
    PEERS,
    READABLE,
    SAMPLE_BYTES,
    Format,
    codec,
    names,
    readable_names,
    reader,
    recognise,
)

MOMENT = datetime(2026, 1, 30, 16, tzinfo=UTC)
MEMORIES = [
    Memory(
        id=f"mem-00000000000{n}",
        agent_id="bob",
        content=f"memory {n}",
        category="note",
        timestamp=MOMENT,
        updated_at=MOMENT,
        created_by_session="session-1",
    )
    for n in range(3)
]
READ_BY = {"backup": "scratchpad", "record-json": "json", "record-jsonl": "jsonl"}
LONG = json.dumps({"content": "x", "metadata": {"long": "y" * 2 * SAMPLE_BYTES}})
CORE = (
    '{"id":"550e8400-e29b-41d4-a716-446655440000","type":"core","content":"x",'
    '"created_at":"2026-01-01T10:00:00Z","updated_at":"2026-01-01T10:00:00Z"}\n'
)


def saved(data: str | bytes, folder: Path) -> Path:
    path = folder / "in"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


# The table ----------------------------------------------------------------------------------


def test_every_format_is_there_under_its_name_and_says_what_it_is() -> None:
    assert set(names()) >= {
        "store", "scratchpad", "backup", "directory", "sqlite", "metadata", "settings", "json",
        "jsonl", "record-json", "record-jsonl",
    }  # fmt: skip
    assert [codec(name).name for name in names()] == list(names())
    assert [reader(name).name for name in readable_names()] == list(readable_names())
    for known in READABLE.values():
        assert "\n" not in known.summary
        assert 10 < len(known.summary) < 100


def test_every_codec_of_the_folder_is_in_the_table() -> None:
    methods = {"recognises", "read", "write"}
    written = {
        node.name
        for path in Path(codecs.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and node.name != "Codec"
        if {part.name for part in node.body if isinstance(part, ast.FunctionDef)} >= methods
    }
    assert written
    assert written <= {base.__name__ for name in names() for base in type(codec(name)).mro()}


def test_what_is_only_read_is_told_so_by_an_export(memory: AgentMemory, tmp_path: Path) -> None:
    for name in PEERS:
        with pytest.raises(
            ValidationError, match=f"'{name}' can only be imported: export in one of store"
        ):
            memory.export(tmp_path / "out", format=name)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("known", READABLE.values(), ids=lambda known: known.name)
def test_help_and_guide_have_the_row_of_a_format(known: Format) -> None:
    pages = Path(agent_memory.__file__).parent.glob("guides/*.md")
    assert sum(known.row in page.read_text().splitlines() for page in pages) == 1
    command = import_ if known.is_read_only else export
    shown = CliRunner().invoke(command, ["--help"]).output
    assert re.search(rf"^ +{known.name} +{re.escape(known.summary)}$", shown, re.MULTILINE)


@pytest.mark.parametrize("name", ["yml", "JSON", "", "json:CODEC", "../json", "os"])
def test_an_unknown_name_is_answered_with_those_that_are_known(name: str) -> None:
    with pytest.raises(ValidationError, match="is not a format: use one of store, ") as caught:
        codec(name)
    assert [error["loc"] for error in caught.value.errors()] == [("format",)]


def test_a_format_is_imported_when_it_is_asked_for() -> None:
    code = (
        "import sys; from agent_memory.formats import registry as codecs\n"
        "codecs.names(); codecs.codec('jsonl')\n"
        "print(*sorted(name for name in sys.modules if 'formats.' in name or name == 'yaml'))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "agent_memory.formats.json_memories" in ran.stdout.split()
    for name in ("store_yaml", "scratchpad", "directory", "settings", "sqlite"):
        assert f"agent_memory.formats.{name}" not in ran.stdout.split()
    assert "yaml" not in ran.stdout.split()


# What is recognised -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "store", "scratchpad", "backup", "directory", "metadata", "settings", "json", "jsonl",
        "record-json", "record-jsonl",
    ],
)  # fmt: skip
def test_what_a_format_wrote_is_recognised(name: str, tmp_path: Path) -> None:
    path = tmp_path / "without-a-suffix"
    codec(name).write(path, ListSource(MEMORIES, hot=[MEMORIES[0].id]))
    assert recognise(path).name == READ_BY.get(name, name)


def test_a_store_of_an_agent_is_recognised(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("kept")
    assert recognise(memory.path).name == "sqlite"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[]\n", "json"),
        ("[1]", "json"),
        ('  \n[{"content": "x"}]', "json"),
        ('{\n  "content": "x"\n}', "json"),
        ('{"content":\n"x"}\n', "json"),
        ('{\n"content": "x"\n}\n{\n"content": "y"\n}\n', "json"),
        ('{"results": [\n{"content": "x"}\n]}', "json"),
        ('{"results": [' + LONG, "json"),
        ('{"agent": "z", "memories": [\n{"content": "x"}\n]}', "json"),
        ('{"content": "x"}{"content": "y"}', "json"),
        ('{"content": "x"}\n{\n"content": "y"\n}\n', "json"),
        ('{"content": "x"}', "jsonl"),
        ('{"content": "x"}\n', "jsonl"),
        ('\ufeff{"content": "x"}\r\n\r\n{"content": "y"}\r\n', "jsonl"),
        ('{"content": "x\u2028y"}\n{"content": "z"}\n', "jsonl"),
        ('{"content": "x"}\nnull\n', "jsonl"),
        ('{"content": "x"}\n{"content": "cut', "jsonl"),
        ('{"content": "cut\n{"content": "x"}\n', "jsonl"),
        ('{"content": "x", "access_count": ' + "7" * 5000 + "}\n", "jsonl"),
        ('{"a":' * 10_000 + "1" + "}" * 10_000 + "\n", "jsonl"),
        (LONG, "jsonl"),
        (f"{LONG}\n{LONG}\n", "jsonl"),
        (CORE, "directory"),
        (CORE.replace(',"type":"core"', ""), "jsonl"),
        ('{"agent_id": "bob", "content": "x", "config": {}}\n', "jsonl"),
        ('memories:\n  - id: "mem-001"\n    content: "x"\n', "scratchpad"),
    ],
    ids=lambda value: value[:40],
)
def test_a_file_is_known_by_its_content(text: str, name: str, tmp_path: Path) -> None:
    assert recognise(saved(text, tmp_path)).name == name


# What is not --------------------------------------------------------------------------------


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("memories.json", "[]")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "looks"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf \r\n", "is empty"),
        (gzip.compress(b"[]", mtime=0), "gzip archive: unpack it first"),
        (zipped(), "zip archive: unpack it first"),
        (b"PK\x05\x06" + bytes(18), "a zip archive with nothing in it"),
        (bz2.compress(b"[]"), "bzip2 archive"),
        (lzma.compress(b"[]"), "xz archive"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "picture"),
        (b"%PDF-1.7\n", "PDF document"),
        ('[{"content": "x"}]'.encode("utf-16"), "UTF-16: save it as UTF-8"),
        ('[{"content": "x"}]'.encode("utf-16-be"), "UTF-16: save it as UTF-8"),
        ('[{"content": "x"}]'.encode("utf-16-le"), "UTF-16: save it as UTF-8"),
        ("<!DOCTYPE html>\n<html></html>", "web page"),
        ("<html lang='en'>", "web page"),
        ("<?xml version='1.0'?><a/>", "XML"),
        (b"caf\xe9: a menu\n", "is not UTF-8 text"),
        (bytes(range(256)), "is not a text"),
        ("id,content\n1,x\n", "begins with 'id,content'"),
        ("Dear diary\x1b[31m", "begins with 'Dear diary\\x1b[31m'"),
        ("null", "begins with 'null'"),
        ("profile: x\n", "begins with 'profile: x'"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_no_format_knows_is_said_to_be_what_it_looks_like(
    data: bytes | str, looks: str, tmp_path: Path
) -> None:
    with pytest.raises(ValidationError) as caught:
        recognise(saved(data, tmp_path))
    assert f"{tmp_path}/in: " in str(caught.value)
    assert looks in str(caught.value)
    assert "--format: store, " in str(caught.value)
    assert "Use `add` to learn from a conversation or a text" in str(caught.value)


def test_a_folder_of_other_things_and_nothing_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(ValidationError, match=r"is a folder without the files of any known format"):
        recognise(tmp_path)
    with pytest.raises(StorageUnavailable, match=r"nothing does not exist"):
        recognise(tmp_path / "nothing")


def test_no_more_than_the_beginning_of_a_long_file_is_read(tmp_path: Path) -> None:
    path = saved("x" * SAMPLE_BYTES, tmp_path)
    with path.open("r+b") as file:
        file.truncate(10**9)  # takes no room on the disk
    with pytest.raises(ValidationError, match="begins with 'xxxx"):
        recognise(path)
    with path.open("r+b") as file:
        file.truncate(3 * 10**9)
    with pytest.raises(ValidationError, match="is longer than"):
        recognise(path)


def test_a_letter_that_the_sample_cuts_is_no_fault(tmp_path: Path) -> None:
    text = '[{"content": "' + "é" * SAMPLE_BYTES + '"}]'
    assert recognise(saved(text, tmp_path)).name == "json"
    with pytest.raises(ValidationError, match="begins with"):
        recognise(saved("x" + "é" * SAMPLE_BYTES, tmp_path))


def test_the_table_cannot_be_changed_by_accident() -> None:
    with pytest.raises(TypeError):
        FORMATS["mine"] = FORMATS["json"]  # type: ignore[index]


@pytest.mark.parametrize("name", [[], {}, None, 5])
def test_what_is_no_text_is_no_name_of_a_format(name: Any) -> None:
    with pytest.raises(ValidationError, match="is not a format: use one of store, "):
        codec(name)
