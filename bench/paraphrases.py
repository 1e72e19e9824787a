"""Questions that share no word with their answer, among the memories of LoCoMo conversations.

    python -m bench.paraphrases PATH/dev.json --embedder wordllama

Forty facts, each in its own session, are stored among all turns and all observations of the
conversations; then each is searched for in other words. Printed is how often it is among the first
hits of a search, and how often its vector is among the nearest, measured from the middle of the
store's vectors and without that.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agent_memory import AgentMemory
from agent_memory.storage.filters import NOT_ARCHIVED
from agent_memory.storage.records import QueryVector
from bench.engine import engine_of
from bench.locomo import Conversation, read
from bench.machine import describe_machine

CUTOFFS: Final = (1, 5, 10, 25)
ANSWERS: Final = {
    "Prefer PostgreSQL for new projects": "which database should I choose?",
    "The dentist sees Anna on Thursday at four": "when is her tooth appointment?",
    "Our car broke down near Leeds": "vehicle trouble on the trip",
    "Grandpa passed away in March": "when did the old man die?",
    "The physician told Omar to cut down on salt": "what did the doctor advise about diet?",
    "Deploys go out every weekday before lunch": "release schedule in the morning",
    "The build fails when the disk is full": "compilation error storage space",
    "Liam adopted a puppy from the shelter": "who got a new dog?",
    "Rent is due on the first of each month": "when must the landlord be paid?",
    "Sofia is allergic to peanuts": "which food makes her ill?",
    "We moved the servers to Frankfurt": "where are the machines hosted now?",
    "Use tabs, never spaces, in Makefiles": "indentation style for build scripts",
    "The kids love dinosaurs": "what are the children fond of?",
    "Marta plays the violin in an orchestra": "which musical instrument does she perform on?",
    "The invoice was settled last week": "has the bill been paid?",
    "Hannah studies medicine in Prague": "where does she attend university?",
    "Nightly jobs write their logs to S3": "where do batch tasks store output in the cloud?",
    "He quit smoking two years ago": "has he given up cigarettes?",
    "The API returns JSON, not XML": "what format does the service respond with?",
    "Passwords are hashed with argon2": "how are credentials encrypted?",
    "The wedding will take place in a vineyard": "marriage ceremony location",
    "Victor is afraid of heights": "what phobia does he have?",
    "The laptop needs a new battery": "computer power replacement",
    "Emma won the chess tournament": "who became champion of the competition?",
    "The flight to Tokyo leaves at dawn": "early morning plane departure to Japan",
    "Carlos earns more since his promotion": "did his salary increase with the new position?",
    "Users complain that the page loads slowly": "performance problems of the website",
    "The cat sleeps on the radiator": "favourite spot of the feline",
    "Ingrid bakes sourdough on Sundays": "who makes bread at the weekend?",
    "The contract ends in December": "when does the agreement expire?",
    "Feature flags live in a YAML file": "configuration toggles location",
    "Customers get refunds within thirty days": "money back policy for clients",
    "The garden is full of roses and tulips": "which flowers grow in the yard?",
    "Never commit secrets to the repository": "keep API keys out of git",
    "Peter commutes by bicycle": "how does he travel to work?",
    "The youngest daughter starts school in autumn": "when does the little girl begin education?",
    "The meeting was postponed until Friday": "conference delayed",
    "Her favourite author is Tolstoy": "which novelist does she like best?",
    "The roof leaks when it rains": "house damaged by water",
    "Unit checks finish in two minutes": "how long until testing is done?",
}


def place(found: Sequence[object], wanted: object) -> int:
    """Return the place of something, from 1; a million if it is missing."""
    return found.index(wanted) + 1 if wanted in found else 1_000_000


def shares(places: Sequence[int]) -> str:
    """Return the share of the places within each of ``CUTOFFS``."""
    return " / ".join(
        f"{100 * sum(it <= cutoff for it in places) / len(places):3.0f}" for cutoff in CUTOFFS
    )


def fill(memory: AgentMemory, conversations: Sequence[Conversation]) -> list[str]:
    """Store the conversations and the answers; return the answers' ids."""
    for number, conversation in enumerate(conversations):
        for corpus in (conversation.turns, conversation.observations):
            name = "turns" if corpus is conversation.turns else "observations"
            memory.store_many(
                {**it.item, "session_id": f"{number} {name} {it.item['session_id']}"}
                for it in corpus
            )
    items = [{"content": text, "session_id": text} for text in ANSWERS]
    return memory.store_many(items)


def places_of_vectors(memory: AgentMemory, ids: Sequence[str], *, centred: bool) -> list[int]:
    """Return the place of each answer among the nearest vectors of its question."""
    engine = engine_of(memory)
    found = []
    for memory_id, question in zip(ids, ANSWERS.values(), strict=True):
        vector = memory._embedding.of_query(question, memory._store.vectors.state()).vector
        assert vector is not None
        with engine.read():
            asked: QueryVector = engine.vectors.center(vector)
            if not centred:
                asked = asked._replace(seen=None)
            cosines = engine.vectors.nearest(asked, NOT_ARCHIVED).cosines
            row_id = engine.database.value("SELECT seq FROM memories WHERE id = ?", (memory_id,))
        in_order: list[int] = sorted(cosines, key=cosines.__getitem__, reverse=True)
        found.append(place(in_order, row_id))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, help="a LoCoMo file, such as locomo10.json")
    parser.add_argument("--embedder", default="none", help="a name, such as wordllama")
    arguments = parser.parse_args()
    print(describe_machine())
    with (
        tempfile.TemporaryDirectory() as folder,
        AgentMemory("bench", root=folder, embedder=arguments.embedder) as memory,
    ):
        ids = fill(memory, read(arguments.path))
        if arguments.embedder != "none":
            memory.migrate()
        places = []
        for memory_id, question in zip(ids, ANSWERS.values(), strict=True):
            hits = memory.search(question, limit=max(CUTOFFS), count_accesses=False)
            places.append(place([hit.memory.id for hit in hits], memory_id))
        cutoffs = " / ".join(map(str, CUTOFFS))
        print(f"{memory.count():,} memories; embedder: {arguments.embedder}")
        print(f"percent among the first {cutoffs}")
        print(f"search                              {shares(places)}")
        if arguments.embedder != "none":
            for centred in (True, False):
                name = "nearest, from the middle" if centred else "nearest, from nowhere"
                found = places_of_vectors(memory, ids, centred=centred)
                print(f"{name:35} {shares(found)}")


if __name__ == "__main__":
    main()
