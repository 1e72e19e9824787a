"""The requirements for the graph's tables in every engine."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agent_memory.conformance.engine_contract.cases import NOW, memory_of, stored
from agent_memory.models.times import format_time
from agent_memory.storage.change_records import Closing, GraphMoment
from agent_memory.storage.engine import Engine

STAMP = format_time(NOW)
LATER = GraphMoment(format_time(NOW + timedelta(days=1)), None, is_past=False)


def entity(engine: Engine, name: str, **values: Any) -> str:
    """Store an entity, and return its id."""
    columns = {"name": name, "name_key": name.lower(), "by_hand": 0}
    moments = {"created_at": STAMP, "updated_at": STAMP}
    return engine.graph.insert_entity({**columns, **moments, **values})


def edge(engine: Engine, source: str, relationship: str, target: str, **values: Any) -> str:
    """Store a relationship, and return its id."""
    columns = {
        "source_id": source,
        "relationship": relationship,
        "target_id": target,
        "confidence": 0.5,
        "by_hand": 0,
        "valid_from": STAMP,
        "created_at": STAMP,
        "updated_at": STAMP,
    }
    return engine.graph.insert_edge({**columns, **values})


class GraphContract:
    """Entities and relationships, and what memories say about them."""

    @pytest.fixture
    def chain(self, engine: Engine) -> list[str]:
        """Give a graph of Ann, Acme and Oslo, in a chain, read from memory mem-1."""
        stored(engine, memory_of(1), memory_of(2))
        with engine.write():
            ids = [entity(engine, name) for name in ("Ann", "Acme", "Oslo")]
            edges = [
                edge(engine, ids[0], "works at", ids[1]),
                edge(engine, ids[1], "is in", ids[2]),
            ]
            for kind, of in [("entity", x) for x in ids] + [("relationship", x) for x in edges]:
                engine.graph.add_source(kind, of, "mem-1", None)
            engine.graph.add_alias(ids[1], "Acme Inc", "acme inc", "mem-1")
        return ids

    def test_names_and_aliases_are_found_in_their_users_graph(
        self, engine: Engine, chain: list[str]
    ) -> None:
        assert engine.graph.find("acme inc", None) == chain[1]
        assert engine.graph.find("acme", "ann") is None
        assert engine.graph.find_all(["ann", "acme inc", "x"], None) == {
            chain[0]: "ann",
            chain[1]: "acme inc",
        }
        (acme,) = engine.graph.entities(user_id=None, ids=[chain[1]])
        assert (acme.name, acme.aliases, acme.source_memory_ids) == (
            "Acme",
            ["Acme Inc"],
            ["mem-1"],
        )

    def test_what_was_read_from_a_memory_is_known(self, engine: Engine, chain: list[str]) -> None:
        assert engine.graph.ids_read_from("mem-1", kind="entity") == chain
        assert len(engine.graph.ids_read_from("mem-1", kind="relationship")) == 2
        assert engine.graph.ids_read_from("mem-2", kind="entity") == []
        rest = engine.graph.entities(user_id=None, after=chain[0])
        assert [view.id for view in rest] == chain[1:]

    def test_a_walk_tells_the_distance_of_each(self, engine: Engine, chain: list[str]) -> None:
        distances, is_cut_off = engine.graph.reached(LATER, [chain[0]], 2)
        assert distances == dict(zip(chain, (0, 1, 2), strict=True))
        assert not is_cut_off
        between = engine.graph.edge_between(LATER, chain[0], [chain[1]])
        assert between is not None
        assert between[1] == chain[1]

    def test_what_is_closed_holds_no_more(self, engine: Engine, chain: list[str]) -> None:
        (open_edge,) = engine.graph.open_edges(chain[0], "works at")
        with engine.write():
            closing = Closing(STAMP, "mem-2", None, STAMP)
            engine.graph.close_edge(open_edge[0], closing, but_in_runs=[])
        assert engine.graph.open_edges(chain[0], "works at") == []
        names = [view.relationship for view in engine.graph.edges(LATER)]
        assert names == ["is in"]
        all_edges = engine.graph.edges(LATER, include_closed=True)
        assert len(all_edges) == 2

    def test_what_another_memory_has_closed_may_hold(
        self, engine: Engine, chain: list[str]
    ) -> None:
        (open_edge,) = engine.graph.open_edges(chain[0], "works at")
        with engine.write():
            engine.graph.close_edge(
                open_edge[0], Closing(STAMP, "mem-2", None, STAMP), but_in_runs=[]
            )
        for held, before, after in ((True, [], [open_edge]), (False, [open_edge], [])):
            with engine.write():
                engine.graph_maintenance.hold("mem-2", "mem-2", is_held=held)  # states nothing
                engine.graph_maintenance.hold("mem-1", "mem-1", is_held=held)  # closed nothing
            assert engine.graph.open_edges(chain[0], "works at") == before
            with engine.write():
                engine.graph_maintenance.hold("mem-1", "mem-2", is_held=held)
            assert engine.graph.open_edges(chain[0], "works at") == after

    def test_what_was_stated_by_hand_is_known(self, engine: Engine, chain: list[str]) -> None:
        (of_memory,) = engine.graph.open_edges(chain[0], "works at")
        assert not engine.graph.is_by_hand(of_memory[0])
        with engine.write():
            twin = edge(engine, chain[0], "works at", chain[1], by_hand=1)
            assert engine.graph.is_by_hand(of_memory[0])
            engine.graph.close_edge(twin, Closing(STAMP, None, None, STAMP), but_in_runs=[])
        assert not engine.graph.is_by_hand(of_memory[0])

    def test_what_no_memory_says_any_more_is_out_of_sight(
        self, engine: Engine, chain: list[str]
    ) -> None:
        with engine.write():
            engine.memory_rows.delete("mem-1")
        assert engine.graph.entities(user_id=None) == []
        assert engine.graph.edges(LATER) == []
        hidden = engine.graph.entities(user_id=None, out_of_sight=True)
        assert [view.id for view in hidden] == chain

    def test_erasing_a_memory_takes_what_only_it_said(
        self, engine: Engine, chain: list[str]
    ) -> None:
        with engine.write():
            engine.graph.add_source("entity", chain[2], "mem-2", None)
            assert "Acme" in engine.graph_maintenance.texts()
            engine.erasure.remove(["mem-1"])
            engine.graph_maintenance.erase(["mem-1"])
        left = engine.graph.entities(user_id=None, out_of_sight=True)
        assert [view.name for view in left] == ["Oslo"]
        assert engine.graph_maintenance.texts().isdisjoint({"Ann", "Acme", "Acme Inc"})

    def test_a_disowned_graph_goes_with_the_next_erasure(self, engine: Engine) -> None:
        with engine.write():
            for user_id in ("ann", "ben"):
                owned = {"user_id": user_id, "by_hand": 1}
                rex, oslo = (entity(engine, name, **owned) for name in ("Rex", "Oslo"))
                edge(engine, rex, "lives_in", oslo, **owned)
            assert engine.graph_maintenance.count_by_hand("ann") == 3
            engine.graph_maintenance.disown("ann")
            engine.graph_maintenance.sweep()
        assert engine.graph_maintenance.count_by_hand("ann") == 0
        assert engine.graph.entities(user_id="ann", out_of_sight=True) == []
        assert len(engine.graph.entities(user_id="ben")) == 2
        assert len(engine.graph.edges(LATER)) == 1

    def test_two_entities_become_one(self, engine: Engine, chain: list[str]) -> None:
        with engine.write():
            other = entity(engine, "ACME Corporation")
            engine.graph.mark_by_hand("entity", other)
            engine.graph_maintenance.merge(chain[1], other)
        names = {view.name for view in engine.graph.entities(user_id=None)}
        assert names == {"Ann", "Acme", "Oslo"}

    def test_what_goes_out_comes_in_elsewhere(self, engine: Engine, chain: list[str]) -> None:
        entities = list(engine.graph_maintenance.iterate_entities())
        edges = list(engine.graph_maintenance.iterate_edges())
        assert (len(entities), len(edges)) == (3, 2)
        with engine.write():
            assert engine.graph_maintenance.import_entity(entities[0], STAMP) == chain[0]
            assert engine.graph_maintenance.has_both_entities(edges[0])
            assert not engine.graph_maintenance.import_edge(edges[0], STAMP)
        assert list(engine.graph_maintenance.iterate_entities()) == entities
