"""Conversations in a shell: added, looked at first, decided about; whole scopes deleted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Cli

from agent_memory import AgentMemory

CHAT = "Alice: Hi! I moved to Lisbon in March.\nAssistant: Nice!\nAlice: My sister is Ingrid.\n"
pytestmark = pytest.mark.usefixtures("as_bob")


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    path = tmp_path / "chat.txt"
    path.write_text(CHAT, encoding="utf-8")
    return path


def contents(root: Path) -> list[str]:
    with AgentMemory("bob", root=root, create=False, embedder=None) as memory:
        return [it.content for it in reversed(memory.list_recent(100))]


def test_a_conversation_is_looked_at_first_and_then_added(cli: Cli, root: Path, chat: Path) -> None:
    seen = cli("add", str(chat), "--user", "alice", "--dry-run")
    assert seen.code == 0
    assert "Lisbon" in seen.out
    assert "facts: 2, operations that would be done: 2, by rules" in seen.out
    assert not (root / "bob").exists()
    done = cli("add", str(chat), "--user", "alice", "--run", "run-1", "--json")
    assert done.code == 0
    assert [it["event"] for it in done.data] == ["ADD", "ADD"]
    found = contents(root)
    assert len(found) == 2
    assert "Lisbon" in found[0]
    again = cli("add", str(chat), "--user", "alice", "--run", "run-1")
    assert "operations done: 0, by rules: already known" in again.out
    nothing = cli("add", "-", input="Write a haiku about spring.")
    assert "by rules: no fact to keep: requests, questions and small talk" in nothing.out
    nothing = cli("add", "-", input="Forget that I drive a Volvo.")
    assert "by rules: nothing like what is to be forgotten is stored" in nothing.out
    assert contents(root) == found


def test_a_conversation_of_which_all_was_refused_is_no_success(cli: Cli, root: Path) -> None:
    limits = {"learning": {"max_memories": 1, "enforcement": "hard"}}
    with AgentMemory("bob", root=root) as memory:
        memory.configure(retention={"limits": limits})
    assert cli("add", "-", input="I bought a lamp yesterday.").code == 0
    refused = cli("add", "-", "--json", input="I watched a film yesterday.")
    assert (refused.code, json.loads(refused.out)["success"]) == (4, False)
    assert "was not stored" in refused.err
    assert contents(root) == ["I bought a lamp yesterday."]


def test_the_standard_input_is_read_and_messages_can_stay_as_they_are(cli: Cli, root: Path) -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    assert cli("add", "-", "--as-is", input=json.dumps({"messages": messages})).code == 0
    assert contents(root) == ["Hi", "Hello"]
    assert cli("undo").code == 0
    assert contents(root) == []


def test_a_file_of_settings_says_whether_there_is_a_graph_and_where_no_store_is(
    cli: Cli, root: Path, chat: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "system.yaml"
    settings.write_text("graph_store: {enabled: true}\n", encoding="utf-8")
    assert cli("add", str(chat), "--user", "alice", "--config", str(settings)).code == 0
    with AgentMemory("bob", root=root, embedder=None) as memory:
        assert "Lisbon" in {it.target for it in memory.graph.relationships()}
    settings.write_text("vector_store: {provider: qdrant}\n", encoding="utf-8")
    refused = cli("add", str(chat), "--config", str(settings))
    assert (refused.code, "SQLite file" in refused.err) == (4, True)
    settings.write_text("graph_stone: {}\n", encoding="utf-8")
    assert "graph_store" in cli("add", str(chat), "--config", str(settings)).err


def test_what_is_wrong_is_named(cli: Cli, root: Path, chat: Path, tmp_path: Path) -> None:
    missing = cli("add", str(tmp_path / "none.json"))
    assert (missing.code, "none.json" in missing.err) == (2, True)
    said = cli("add", "I like tea")
    assert (said.code, "'I like tea'" in said.err, "add -" in said.err) == (2, True, True)
    broken = cli("add", "-", input='{"messages": [{"role": "robot", "content": "x"}]}')
    assert (broken.code, "role" in broken.err) == (4, True)
    user = cli("add", str(chat), "--user", " alice")
    assert (user.code, "user_id" in user.err) == (4, True)
    model = cli("add", str(chat), "--llm", "nobody:x")
    assert (model.code, "nobody" in model.err) == (4, True)
    assert not (root / "bob").exists() or contents(root) == []


def test_somebody_decides_about_what_is_in_question(cli: Cli, root: Path) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        kept, gone = memory.store("I like pasta"), memory.store("I like pizza")

        def unsure(_messages: object, schema: dict[str, object]) -> dict[str, object]:
            if schema["title"] == "extracted_facts":
                return {"facts": ["forget pasta", "forget pizza"]}
            told = {"event": "DELETE", "text": "x", "confidence": 0.2, "reasoning": "a guess"}
            return {"memory": [{**told, "id": str(n), "facts": [n]} for n in (0, 1)]}

        memory.add("forget pasta and pizza", llm=unsure)
        numbers = {it.memory_id: str(it.review_id) for it in memory.reviews()}
    listed = cli("review")
    assert "I like pasta" in listed.out
    assert "20% sure" in listed.out
    assert "a guess" in listed.out
    done = cli("review", "--approve", numbers[gone], "--dismiss", numbers[kept], "--json")
    assert [it["id"] for it in done.data["deleted"]] == [gone]
    assert cli("review").out == "no memory is under review\n"
    assert contents(root) == ["I like pasta"]
    assert cli("undo").out.startswith("undid dismiss: no memory changed")
    assert "I like pasta" in cli("review").out
    assert cli("review", "--approve", "99").code == 4


def test_of_what_is_partly_contradicted_it_is_told_what_is_left(cli: Cli, root: Path) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        part = memory.add("I grow figs and plums.").data[0].id
        memory.add("I no longer grow plums.")
        memory.add("I keep bees and geese with Ivo.")
        memory.add("I no longer keep geese.")
    first, second = cli("review").out.split("2. ")
    assert "   approving leaves: I grow figs.\n" in first
    assert "only a part of it is contradicted" in second
    assert "leaves" not in second
    shown = cli("review", "--json").data["reviews"]
    assert [review["remaining"] for review in shown] == ["I grow figs.", None]
    refused = cli("review", "--approve", "1", "--approve", "2")
    assert refused.code == 4
    assert "nothing was decided" in refused.err
    assert "I grow figs and plums." in contents(root)
    assert cli("review", "--approve", "1").out == f"shortened {part}: I grow figs.\n"
    assert {"I grow figs.", "I keep bees and geese with Ivo."} < set(contents(root))
    cli("undo")
    assert "   approving leaves: I grow figs.\n" in cli("review").out
    done = cli("review", "--approve", "1", "--json")
    assert ([it["id"] for it in done.data["shortened"]], done.data["deleted"]) == ([part], [])


def test_what_reviews_leave_of_one_memory_is_told_once(cli: Cli, root: Path) -> None:
    texts = ("I grow figs, plums and kale.", "I no longer grow kale.", "I sold the figs.")
    with AgentMemory("bob", root=root, embedder=None) as memory:
        part, *_ = [memory.add(text).data[0].id for text in texts]
    both = ("review", "--approve", "1", "--approve", "2")
    assert cli(*both).out == f"shortened {part}: I grow plums.\n"
    cli("undo")
    assert cli("review", "--approve", "1", "--dismiss", "2").code == 0
    assert cli("undo").out.startswith("undid dismiss")
    assert "2. " in cli("review").out
    assert "1. " not in cli("review").out
    cli("undo", "--review", "1")
    assert "I grow figs, plums and kale." in contents(root)
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.add("I no longer grow plums.")
    done = cli(*both, "--approve", "3", "--json")
    assert ([it["id"] for it in done.data["deleted"]], done.data["shortened"]) == ([part], [])


def test_of_several_decisions_all_are_made_or_none(cli: Cli, root: Path) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        for text in ("I grow figs and kale.", "I no longer grow kale.", "I own a bike and a car."):
            memory.add(text)
        memory.add("I sold the car.")
        memory.reject("own a bike")
    before = cli("review").out
    for given in (("--dismiss", "1", "--approve", "2"), ("--approve", "1", "--approve", "2")):
        assert cli("review", *given).code != 0
        assert cli("review").out == before
    assert "I grow figs and kale." in contents(root)


def test_a_users_memories_are_deleted_and_then_all(cli: Cli, root: Path) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.store("of Alice", user_id="alice")
        memory.store("of Ben", user_id="ben")
    assert cli("delete-all", "--yes").code == 2
    assert cli("delete-all", "--user", "alice").code == 2  # there is nobody to ask
    done = cli("delete-all", "--user", "alice", "--yes")
    assert (done.code, done.out) == (0, "deleted 1 memory: `undo` brings it back\n")
    assert contents(root) == ["of Ben"]
    none = cli("delete-all", "--user", "alice")
    assert (none.code, none.out) == (0, "no memory matches: nothing was deleted\n")
    assert cli("delete-all", "--user", "alice", "--json").data["deleted"] == []
    assert cli("reset").code == 2
    assert cli("reset", "--yes").out == "deleted 1 memory\n"
    assert contents(root) == []
    assert cli("undo").code == 0
    assert contents(root) == ["of Ben"]
