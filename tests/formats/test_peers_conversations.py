"""ChatGPT's, Claude's and Claude Code's conversations: facts by rules, or each message as it is."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from peer_files import everything, lines, taken_in

from agent_memory import AgentMemory, StorageError, ValidationError
from agent_memory.formats.registry import recognise
from agent_memory.models.times import now_utc

NOON = 1_750_000_000.25
"""2025-06-15T15:06:40.25Z"""


def chatgpt(name: str, *said: tuple[str, Any], began: float = NOON, **more: Any) -> dict[str, Any]:
    """Return a conversation as ChatGPT exports it, its messages ten seconds apart."""
    nodes: dict[str, Any] = {"root": {"id": "root", "parent": None, "message": None}}
    parent = "root"
    for number, (role, content) in enumerate(said):
        key = f"{name}-{number}"
        message = {
            "id": key,
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": began + 10 * number,
            "content": {"content_type": "text", "parts": [content]},
            "metadata": {},
            "recipient": "all",
        }
        if isinstance(content, dict):
            message = {**message, **content}
        nodes[key] = {"id": key, "parent": parent, "children": [], "message": message}
        parent = key
    return {
        "title": f"About {name}",
        "create_time": began,
        "mapping": nodes,
        "current_node": parent,
        "conversation_id": name,
        **more,
    }


def claude(name: str, *said: tuple[str, Any]) -> dict[str, Any]:
    """Return a conversation as Claude exports it."""
    messages = [
        {
            "uuid": f"{name}-{number}",
            "sender": sender,
            "text": content if isinstance(content, str) else "",
            "content": [{"type": "text", "text": content}] if isinstance(content, str) else content,
            "created_at": f"2025-06-15T15:06:{number:02d}.000000Z",
            "attachments": [],
            "files": [],
        }
        for number, (sender, content) in enumerate(said)
    ]
    return {"uuid": name, "name": f"About {name}", "account": {}, "chat_messages": messages}


def event(number: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    """Return a line of a transcript of Claude Code."""
    return {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/src/shop",
        "sessionId": "11111111-2222-4333-8444-555555555555",
        "version": "2.1.219",
        "type": kind,
        "message": {"role": kind, "content": content},
        "uuid": f"event-{number}",
        "timestamp": f"2026-03-01T10:00:{number:02d}.500Z",
        **more,
    }


def zipped(path: Path, **files: Any) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in files.items():
            archive.writestr(name.replace("__", "/") + ".json", json.dumps(value))
    return path


TALKS = [
    chatgpt("later", ("user", "I moved to Munich."), ("assistant", "Nice!"), began=NOON + 9e6),
    chatgpt("earlier", ("user", "I live in Berlin."), ("user", "My dog is called Rex. Thanks!")),
]


@pytest.mark.parametrize("form", ["file", "zip", "folder", "split", "folder of zips"])
def test_an_export_of_chatgpt_comes_in_whichever_form_it_has(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    path = folder
    if form == "file":
        path = folder / "conversations.json"
        path.write_text(json.dumps(TALKS))
    elif form == "zip":
        path = zipped(tmp_path / "export.zip", conversations=TALKS, user={"id": "user-1"})
    elif form == "folder":
        (folder / "conversations.json").write_text(json.dumps(TALKS, indent=1))
        (folder / "chat.html").write_text("<html>")
    elif form == "split":
        for number, talk in enumerate(TALKS):
            (folder / f"conversations-00{number}.json").write_text(json.dumps([talk]))
    else:
        for number, talk in enumerate(TALKS):
            zipped(folder / f"part-{number}.zip", **{f"conversations-00{number}": [talk]})
    report, memories = taken_in(path, tmp_path, raw=True)
    assert (report.format, report.new, report.refused) == ("chatgpt", 4, 0)
    assert [(each.content, each.metadata["role"]) for each in memories] == [
        ("I moved to Munich.", "user"),
        ("Nice!", "assistant"),
        ("I live in Berlin.", "user"),
        ("My dog is called Rex. Thanks!", "user"),
    ]
    assert [each.created_by_session for each in memories] == ["later"] * 2 + ["earlier"] * 2
    assert memories[2].timestamp.isoformat() == "2025-06-15T15:06:40.250000+00:00"
    assert memories[2].metadata == {
        "title": "About earlier", "conversation": "earlier", "role": "user", "source": "chatgpt",
    }  # fmt: skip


def test_what_lasts_is_taken_in_and_what_was_corrected_is_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(TALKS))
    report, memories = taken_in(path, tmp_path)
    facts = {each.content: each for each in memories}
    assert facts.keys() == {"I live in Berlin.", "My dog is called Rex.", "I moved to Munich."}
    with AgentMemory.open(tmp_path / "in.db") as memory:
        (review,) = memory.reviews()
        assert review.content == "I live in Berlin."
        assert review.replaced_by == facts["I moved to Munich."].id
    assert facts["I moved to Munich."].metadata["source"] == "chatgpt"
    assert facts["My dog is called Rex."].created_by_session == "earlier"
    assert facts["My dog is called Rex."].timestamp.isoformat().startswith("2025-06-15T15:06:50.25")
    assert "only lasting facts are imported (--raw imports each message): 4" in report.notes[0]


def test_a_fact_that_is_said_often_is_one_memory(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    said = ("user", "I never eat meat on weekdays.")
    talks = [chatgpt(f"talk-{n}", said, began=NOON + n) for n in range(5)]
    path.write_text(json.dumps(talks))
    report, memories = taken_in(path, tmp_path)
    assert [each.created_by_session for each in memories] == ["talk-0"]
    assert "facts already stated before: 4" in report.notes[0]
    (tmp_path / "raw").mkdir()
    assert taken_in(path, tmp_path / "raw", raw=True)[0].new == 5


def test_what_chatgpt_remembered_and_what_the_user_told_it_are_memories(tmp_path: Path) -> None:
    saved = {"recipient": "bio", "content": {"content_type": "text", "parts": ["Has a dog, Rex."]}}
    about = {
        "about_user_message": "I teach chemistry.",
        "about_model_message": "Answer in metric units.",
    }
    told = {
        "content": {"content_type": "user_editable_context"},
        "metadata": {
            "is_visually_hidden_from_conversation": True,
            "user_context_message_data": about,
        },
    }
    talks = [
        chatgpt(name, ("system", told), ("user", "Hi"), ("assistant", saved), ("tool", "Updated."))
        for name in ("a", "b")
    ]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(talks))
    _, memories = taken_in(path, tmp_path)
    assert sorted((each.content, each.metadata["kind"]) for each in memories) == [
        ("Answer in metric units.", "instructions"),
        ("Has a dog, Rex.", "saved memory"),
        ("Has a dog, Rex.", "saved memory"),  # of two conversations
        ("I teach chemistry.", "about the user"),
    ]


def test_the_branch_that_was_shown_last_is_read_and_nothing_that_nobody_said(
    tmp_path: Path,
) -> None:
    talk = chatgpt(
        "a",
        ("user", "An old wording"),
        ("user", {"content": {"content_type": "multimodal_text", "parts": [{"asset": 1}, "See"]}}),
        ("assistant", {"recipient": "python", "content": {"content_type": "code", "text": "1+1"}}),
        ("assistant", {"content": {"content_type": "thoughts", "thoughts": []}}),
        ("tool", "2"),
        ("assistant", {"metadata": {"is_visually_hidden_from_conversation": True}}),
        ("assistant", "Done\x00 \ud83d"),
    )
    talk["mapping"]["a-1"]["parent"] = "root"  # the first message was written anew
    talks = [talk, chatgpt("b", ("user", "x"), is_do_not_remember=True)]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(talks))
    report, memories = taken_in(path, tmp_path, raw=True)
    assert [each.content for each in memories] == ["See", "Done \ufffd"]
    assert "non-dialogue messages (tools, files, thoughts): 4" in report.notes[0]
    assert "conversations that are not to be remembered: 1" in report.notes[0]


def test_a_ring_of_messages_ends(tmp_path: Path) -> None:
    talk = chatgpt("a", ("user", "first"), ("user", "second"))
    talk["mapping"]["a-0"]["parent"] = "a-1"
    del talk["current_node"]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([talk]))
    assert taken_in(path, tmp_path, raw=True)[0].new == 2


# Claude -------------------------------------------------------------------------------------------


def test_an_export_of_claude_comes_in_with_what_it_remembered(tmp_path: Path) -> None:
    blocks = [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Use ruff."}]
    talk = claude(
        "c1",
        ("human", "My dog is called Rex."),
        ("assistant", blocks),
        ("assistant", [{"type": "tool_use", "name": "x"}]),
    )
    talk["chat_messages"][0]["attachments"] = [{"file_name": "a.txt", "extracted_content": "x"}]
    remembered = {
        "conversations_memory": "**Work**\n\nTeaches chemistry.\n\n- Likes tea\n",
        "project_memories": {"p1": "Ships on Fridays"},
        "account_uuid": "u",
    }
    path = zipped(
        tmp_path / "data.zip",
        conversations=[talk],
        memories=[remembered],
        users=[{"uuid": "u", "email_address": "a@example.com"}],
        projects__p1={"uuid": "p1", "name": "Shop", "docs": []},
    )
    report, memories = taken_in(path, tmp_path, raw=True)
    assert (report.format, report.refused) == ("claude", 0)
    assert [each.content for each in memories] == [
        "My dog is called Rex.", "Use ruff.", "**Work**", "Teaches chemistry.", "Likes tea",
        "Ships on Fridays",
    ]  # fmt: skip
    assert memories[0].timestamp.isoformat() == "2025-06-15T15:06:00+00:00"
    assert memories[-1].metadata == {"kind": "memory", "project": "p1", "source": "claude"}
    for words in ("(tools, thoughts): 1", "files: 1", "accounts: 1", "their documents: 1"):
        assert words in report.notes[0]
    (tmp_path / "facts").mkdir()
    contents = [each.content for each in taken_in(path, tmp_path / "facts")[1]]
    assert "My dog is called Rex." in contents
    assert "Use ruff." not in contents


def test_the_archives_in_which_claude_splits_an_export_are_read_from_their_folder(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    zipped(folder / "conversations-000.zip", conversations=[claude("c", ("human", "Hello there"))])
    memory = {"conversations_memory": "Likes tea", "project_memories": {}, "memory_files": [{}]}
    part = zipped(folder / "memories-000.zip", memories__acct=memory)
    assert recognise(part).name == "claude"
    report, memories = taken_in(folder, tmp_path, raw=True)
    assert [each.content for each in memories] == ["Hello there", "Likes tea"]
    assert "memory files: 1" in report.notes[0]


# Claude Code --------------------------------------------------------------------------------------


def test_transcripts_of_claude_code_come_in_with_the_notes_beside_them(tmp_path: Path) -> None:
    project = tmp_path / "projects" / "-src-shop"
    (project / "memory").mkdir(parents=True)
    (project / "memory" / "tabs.md").write_text("---\nname: tabs\n---\nUse tabs\n")
    (project / "session.jsonl").write_text(
        lines(
            {"type": "file-history-snapshot", "snapshot": {}},
            event(1, "user", "My dog is called Rex."),
            event(2, "assistant", [{"type": "thinking", "thinking": "?"}]),
            event(3, "assistant", [{"type": "text", "text": "Good."}, {"type": "tool_use"}]),
            event(4, "user", [{"type": "tool_result", "content": "ok"}]),
            event(5, "user", "<command-name>/clear</command-name>"),
            event(6, "user", "Caveat: The messages below were generated by the user"),
            event(7, "assistant", "From a subagent", isSidechain=True),
            event(8, "user", "A summary", isCompactSummary=True),
            {"type": "novelty", "sessionId": "x"},
            '{"type": "user", "message": {"content": "cut o',
        )
    )
    report, memories = taken_in(project.parent, tmp_path, raw=True)
    assert (report.format, report.refused) == ("claude-code", 1)
    assert report.refusals[0].place == "-src-shop/session.jsonl, line 11"
    assert [each.content for each in memories] == ["My dog is called Rex.", "Good.", "Use tabs"]
    assert memories[0].metadata == {
        "conversation": event(0, "user", "")["sessionId"],
        "project": "/src/shop",
        "role": "user",
        "source": "claude-code",
    }
    assert memories[0].timestamp.isoformat() == "2026-03-01T10:00:01.500000+00:00"
    for words in ("events of the program: 1", "messages of subagents: 1", "type 'novelty'"):
        assert words in report.notes[0]
    for path in (project, project / "session.jsonl"):
        assert recognise(path).name == "claude-code"
    (tmp_path / "facts").mkdir()
    _, facts = taken_in(project / "session.jsonl", tmp_path / "facts")
    assert [each.content for each in facts] == ["My dog is called Rex."]


def test_a_long_session_and_many_kinds_of_lines_take_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    with path.open("w") as file:
        file.write(lines(event(1, "user", "I never eat meat on weekdays.")))
        for number in range(3_000):
            text = f"Message {number} " + "x" * 6_000
            said = event(number % 60, "assistant", text, uuid=f"u-{number}")
            file.write(lines(said, {"type": f"kind {number}"}))
    code = (
        "import sys, tracemalloc; from agent_memory.formats.registry import reader\n"
        "tracemalloc.start(); count = 0\n"
        "for part in reader('claude-code').contents(__import__('pathlib').Path(sys.argv[1])):\n"
        "    count += len(getattr(part, 'messages', ()))\n"
        "print(count, tracemalloc.get_traced_memory()[1])"
    )
    words = [sys.executable, "-c", code, str(path)]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    count, peak = map(int, ran.stdout.split())
    assert count == 3_001
    assert peak < 12_000_000 < path.stat().st_size
    with AgentMemory.open(tmp_path / "in.db", agent_id="bob") as memory:
        report = memory.import_(path)
    assert "items of other kinds: 5,971" in report.notes[0]


# Hostile and broken -------------------------------------------------------------------------------


WRONG: list[Any] = [7, "x", None, [], {}, [[]], {"a": 7}, [7]]


@pytest.mark.parametrize(
    "place", ["mapping", "title", "conversation_id", "current_node", "message", "author", "role",
              "content", "content_type", "parts", "create_time", "metadata", "parent", "recipient"],
)  # fmt: skip
def test_wrong_types_are_named_or_passed_over(tmp_path: Path, place: str) -> None:
    talks = []
    for number, value in enumerate(WRONG):
        talk = chatgpt(f"a{number}", ("user", "first"), ("user", "second"))
        node = talk["mapping"][f"a{number}-0"]
        message = node["message"]
        homes = {"message": node, "parent": node, "role": message["author"]}
        homes |= {"parts": message["content"], "content_type": message["content"]}
        home = homes.get(place, talk if place in talk else message)
        home[place] = value
        talks += [talk, chatgpt(f"b{number}", ("user", f"is fine {number}"))]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(talks))
    report, memories = taken_in(path, tmp_path, raw=True, format="chatgpt")
    contents = [it.content for it in memories]
    assert [f"is fine {number}" in contents for number in range(len(WRONG))] == [True] * len(WRONG)
    assert report.refused == (len(WRONG) - 2 if place == "mapping" else 0)  # but objects


@pytest.mark.parametrize(
    "place", ["chat_messages", "uuid", "name", "sender", "text", "content", "attachments", "files",
              "created_at"],
)  # fmt: skip
def test_wrong_types_in_claudes_export(tmp_path: Path, place: str) -> None:
    talks = []
    for number, value in enumerate(WRONG):
        talk = claude(f"a{number}", ("human", "first"), ("human", "second"))
        (talk if place in ("chat_messages", "name") else talk["chat_messages"][0])[place] = value
        talks += [talk, claude(f"b{number}", ("human", f"is fine {number}"))]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(talks))
    _, memories = taken_in(path, tmp_path, raw=True, format="claude")
    contents = [it.content for it in memories]
    assert [f"is fine {number}" in contents for number in range(len(WRONG))] == [True] * len(WRONG)


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.99])
def test_a_file_that_was_cut_off_brings_nothing(tmp_path: Path, cut: float) -> None:
    path = tmp_path / "conversations.json"
    text = json.dumps(TALKS)
    path.write_text(text[: int(len(text) * cut)])
    with AgentMemory.open(tmp_path / "in.db", agent_id="bob") as memory:
        for raw in (True, False):
            with pytest.raises(ValidationError, match=r"cut off|is not JSON"):
                memory.import_(path, raw=raw)
        assert everything(memory) == []


@pytest.mark.parametrize("damage", ["truncated", "flipped", "encrypted", "method"])
def test_a_broken_archive_is_a_typed_error(tmp_path: Path, damage: str) -> None:
    path = zipped(tmp_path / "export.zip", conversations=TALKS * 50)
    data = bytearray(path.read_bytes())
    central = data.rfind(b"PK\x01\x02")
    if damage == "truncated":
        data = data[: len(data) // 2]
    elif damage == "flipped":
        data[len(data) // 2] ^= 0xFF
    elif damage == "encrypted":
        data[6] |= 1
        data[central + 8] |= 1
    else:
        data[8] = data[central + 10] = 97
    path.write_bytes(data)
    with AgentMemory.open(tmp_path / "in.db", agent_id="bob") as memory:
        with pytest.raises((ValidationError, StorageError)) as caught:
            memory.import_(path, format="chatgpt")
        assert str(path) in str(caught.value)
        assert everything(memory) == []


def test_names_in_an_archive_lead_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "in" / "export.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../conversations.json", json.dumps(TALKS))
        archive.writestr("/etc/conversations-001.json", json.dumps(TALKS[:1]))
    report, _ = taken_in(path, tmp_path, raw=True)
    assert report.new == 4
    assert sorted(file.name for file in path.parent.iterdir()) == ["export.zip"]


def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = zipped(tmp_path / "export.zip", conversations=TALKS)
    data = bytearray(path.read_bytes())
    central = data.rfind(b"PK\x01\x02")
    data[central + 24 : central + 28] = (3_000_000_000).to_bytes(4, "little")
    path.write_bytes(data)
    with (
        AgentMemory.open(tmp_path / "in.db", agent_id="bob") as memory,
        pytest.raises(ValidationError, match="unpacks to more than 2,000,000,000 bytes"),
    ):
        memory.import_(path)


def test_a_bomb_takes_no_more_memory_than_one_conversation_may(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("conversations.json", "w") as file,
    ):
        file.write(b'[{"mapping": {"a": "')
        for _ in range(400):
            file.write(b"x" * 1_000_000)
    assert path.stat().st_size < 1_000_000
    code = (
        "import sys; from agent_memory import AgentMemory, ValidationError\n"
        "memory = AgentMemory.open(sys.argv[1], agent_id='bob')\n"
        "try: memory.import_(sys.argv[2])\n"
        "except ValidationError as error: print(error)\n"
        # not ru_maxrss, which counts what the process that began this one had
        "print(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0])"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "in.db"), str(path)]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    message, peak = ran.stdout.splitlines()
    assert "is longer than 64,000,000 characters" in message
    assert int(peak) < 600_000  # KiB
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 0


def test_a_folder_of_notes_with_other_files_in_it_stays_one(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "sub").mkdir(parents=True)
    (notes / "tea.md").write_text("Likes tea")
    (notes / "broken.zip").write_bytes(b"PK\x03\x04 and no more")
    (notes / "conversations.json").write_text('[{"mapping": 7')
    (notes / "sub" / "x.jsonl").write_bytes(b"{\xff\n")
    assert recognise(notes).name == "markdown"
    zipped(notes / "broken.zip", conversations=TALKS)
    assert recognise(notes).name == "chatgpt"


def test_raw_is_for_conversations_alone(memory: AgentMemory, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"content": "x"}\n')
    with pytest.raises(ValidationError, match="raw: is for conversations, and"):
        memory.import_(path, raw=True)


def timed(folder: Path, moment: object, *texts: str) -> Path:
    """Write a conversation of a user whose messages all say the same time."""
    talk = chatgpt("one", *(("user", text) for text in texts))
    for node in talk["mapping"].values():
        if node["message"]:
            node["message"]["create_time"] = moment
    path = folder / "conversations.json"
    path.write_text(json.dumps([talk]))
    return path


@pytest.mark.parametrize("moment", [None, "1750000000.25", 10**400])
def test_what_says_no_time_comes_in_once(tmp_path: Path, moment: object) -> None:
    path = timed(tmp_path, moment, "I live in Berlin.", "My dog is called Rex.")
    with AgentMemory("bob", root=tmp_path) as memory:
        before = now_utc()
        assert memory.import_(path).new == 2
        again = memory.import_(path)
        assert (again.new, again.same) == (0, 2)
        assert all(each.timestamp >= before for each in everything(memory))


def test_no_time_is_made_up_for_what_says_none(tmp_path: Path) -> None:
    path = timed(tmp_path, None, "My favorite color is blue.", "My favorite color is red.")
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.import_(path)
        memory.export(out := tmp_path / "out.yaml")
        assert "red" in out.read_text()
        assert "1970" not in out.read_text()


def test_what_says_no_time_was_said_after_what_comes_before(tmp_path: Path) -> None:
    talk = chatgpt("one", ("user", "I live in Rome."), ("user", "I moved to Oslo."))
    *_, last = talk["mapping"].values()
    last["message"]["create_time"] = None
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([talk]))
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.import_(path)
        (review,) = memory.reviews()
        assert review.content == "I live in Rome."


def test_a_transcript_may_begin_with_many_summaries(tmp_path: Path) -> None:
    """Those of the sessions that were resumed."""
    path = tmp_path / "session.jsonl"
    summary = {"type": "summary", "summary": "Moved the queue", "leafUuid": "event-9"}
    path.write_text(lines(*[summary] * 60, event(1, "user", "I live in Berlin.")))
    report, (memory,) = taken_in(path, tmp_path, raw=True)
    assert (report.format, memory.content) == ("claude-code", "I live in Berlin.")
