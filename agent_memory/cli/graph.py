"""Commands about the graph of what memories mention: show, path, add, merge and others."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from agent_memory.cli.options import FILE, Moment, Session, as_of_option, json_option
from agent_memory.cli.render import emit
from agent_memory.cli.streams import place_to_write, refuse_json_beside_export
from agent_memory.cli.tables import table
from agent_memory.models.graph import EdgeView, EntityView, GraphPath, Neighbourhood

_user_option = click.option("--user", "user_id", metavar="ID", help="The user whose graph it is.")
_memory_option = click.option(
    "--memory", "memory_id", metavar="ID", help="The memory that states it."
)


@click.group()
def graph() -> None:
    """Show and change how people and things in memories are related, and when.

    \b
    Examples:
      agent-memory --agent bob graph add Alice works_at Acme
      agent-memory --agent bob graph show Alice --as-of 2026-01-28
      agent-memory --agent bob graph export --format graphml --output g.graphml
    """


@graph.command()
@click.argument("name", required=False)
@_user_option
@as_of_option
@click.option("--all", "include_closed", is_flag=True, help="Include what no longer holds.")
@json_option
@click.pass_obj
def show(
    session: Session,
    /,
    name: str | None,
    user_id: str | None,
    as_of: datetime | None,
    include_closed: bool,
) -> None:
    """Show the relationships that hold: all of them, or those of NAME.

    \b
    Example:
      agent-memory --agent bob graph show Alice --all
    """
    with session.open() as memory:
        edges = memory.graph.relationships(
            name, user_id=user_id, as_of=as_of, include_closed=include_closed
        )
        entity = None if name is None else memory.graph.entity(name, user_id=user_id)
    data = {"entity": entity, "relationships": edges}
    heading = "" if _is_of_several_users(edges) else _entity_text(entity)
    emit(data, text=heading + _edges_text(edges))


@graph.command()
@click.argument("name")
@click.option("--depth", type=click.IntRange(1, 8), default=1, help="How many steps away.")
@_user_option
@as_of_option
@json_option
@click.pass_obj
def neighbours(
    session: Session, /, name: str, depth: int, user_id: str | None, as_of: datetime | None
) -> None:
    """Show what is related to NAME, nearest first.

    \b
    Example:
      agent-memory --agent bob graph neighbours Alice --depth 2
    """
    with session.open() as memory:
        neighbourhood = memory.graph.neighbours(name, depth, user_id=user_id, as_of=as_of)
    emit(neighbourhood, text=_neighbours_text(neighbourhood.for_display()))


@graph.command()
@click.argument("source")
@click.argument("target")
@click.option(
    "--max-depth", type=click.IntRange(1, 8), default=4, help="The longest path, in steps."
)
@_user_option
@as_of_option
@json_option
@click.pass_obj
def path(
    session: Session,
    /,
    source: str,
    target: str,
    max_depth: int,
    user_id: str | None,
    as_of: datetime | None,
) -> None:
    """Show a shortest path from SOURCE to TARGET, ignoring the direction of relationships.

    \b
    Example:
      agent-memory --agent bob graph path Alice Berlin
    """
    with session.open() as memory:
        path = memory.graph.path(source, target, max_depth, user_id=user_id, as_of=as_of)
    emit(path, text=_path_text(path.for_display(), max_depth))


@graph.command()
@click.argument("source")
@click.argument("relationship")
@click.argument("target")
@click.option("--confidence", type=click.FloatRange(0, 1), default=1.0, help="How sure, 0 to 1.")
@click.option(
    "--from", "valid_from", type=Moment(), help="Since when: 2026-01-28, 7d; default: now."
)
@click.option("--context", "temporal_context", help='When, in words: "next summer".')
@click.option(
    "--exclusive/--not-exclusive",
    default=None,
    help="Close the same relationship with other targets.",
)
@_memory_option
@_user_option
@json_option
@click.pass_obj
def add(session: Session, /, **fields: Any) -> None:
    """State that SOURCE has a RELATIONSHIP with TARGET; unknown entities are created.

    lives_in, works_at, works_as, is_married_to and is_named hold with one TARGET at a time: a new
    one closes the old one.

    \b
    Example:
      agent-memory --agent bob graph add Alice works_at Acme --from 2025-03-01
    """
    with session.open(create=True) as memory:
        edge = memory.graph.add(**fields)
    emit(edge, text=_edges_text([edge]))


@graph.command()
@click.argument("source")
@click.argument("relationship")
@click.argument("target")
@click.option("--to", "valid_to", type=Moment(), help="Until when: 2026-01-28, 7d; default: now.")
@_memory_option
@_user_option
@json_option
@click.pass_obj
def remove(session: Session, /, **fields: Any) -> None:
    """State that a relationship no longer holds. It stays in the past: `graph show --all`.

    \b
    Example:
      agent-memory --agent bob graph remove Alice works_at Acme
    """
    with session.open() as memory:
        change = memory.graph.remove(**fields)
    emit(change, text=f"closed {' '.join(change.closed)}")


@graph.command()
@click.argument("keep")
@click.argument("other")
@_user_option
@json_option
@click.pass_obj
def merge(session: Session, /, keep: str, other: str, user_id: str | None) -> None:
    """Merge two entities whose names mean the same: OTHER becomes an alias of KEEP.

    \b
    Example:
      agent-memory --agent bob graph merge "Robert Smith" Bob
    """
    with session.open() as memory:
        entity = memory.graph.merge(keep, other, user_id=user_id)
    emit(entity, text=_entity_text(entity).strip())


@graph.command()
@click.option("--format", "format_", type=click.Choice(["graphml", "json"]), default="graphml")
@click.option(
    "--output", "-o", required=True, metavar="PATH", type=FILE, help="A file; - for stdout."
)
@click.option("--force", "--overwrite", "overwrite", is_flag=True, help="Replace an existing file.")
@_user_option
@as_of_option
@json_option
@click.pass_obj
def export(
    session: Session,
    /,
    format_: str,
    output: str,
    overwrite: bool,
    user_id: str | None,
    as_of: datetime | None,
) -> None:
    """Write the graph to a file: GraphML (Gephi, yEd, networkx) or JSON.

    \b
    Example:
      agent-memory --agent bob graph export --format json --output graph.json
    """
    refuse_json_beside_export(output, session.printed_as, session.printed_by)
    with session.open() as memory, place_to_write(output) as place:
        done = memory.graph.export(
            place, format=format_, user_id=user_id, as_of=as_of, overwrite=overwrite
        )
    if output != "-":
        emit({"path": str(done), "format": format_}, text=str(done))


# Output -------------------------------------------------------------------------------------------


def _entity_text(entity: EntityView | None) -> str:
    if entity is None:
        return ""
    entity = entity.for_display()
    kind = f" ({entity.type})" if entity.type else ""
    aliases = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
    return f"{entity.name}{kind}{aliases}\n"


def _edges_text(edges: Sequence[EdgeView]) -> str:
    if not edges:
        return "no relationships"
    rows = [
        (_day(edge.valid_from), _day(edge.valid_to), edge.source, edge.relationship, edge.target,
         " ".join(edge.source_memory_ids) or "-", edge.user_id or "-")
        for edge in (edge.for_display() for edge in edges)
    ]  # fmt: skip
    names = ("from", "to", "source", "relationship", "target", "memories", "user")
    count = len(names) if _is_of_several_users(edges) else len(names) - 1
    return table(names[:count], [row[:count] for row in rows])


def _is_of_several_users(edges: Sequence[EdgeView]) -> bool:
    return len({edge.user_id for edge in edges}) > 1


def _day(moment: datetime | None) -> str:
    return "-" if moment is None else str(moment.date())


def _neighbours_text(neighbourhood: Neighbourhood) -> str:
    if not neighbourhood.neighbours:
        return f"{neighbourhood.name} has no neighbours"
    rows = [
        (str(neighbour.distance), neighbour.type or "-", neighbour.name)
        for neighbour in neighbourhood.neighbours
    ]
    shown = table(("steps", "type", "name"), rows)
    more = "\nthere is more, which was not searched" if neighbourhood.truncated else ""
    return f"{shown}\n{_edges_text(neighbourhood.edges)}{more}"


def _path_text(path: GraphPath, max_depth: int) -> str:
    if not path:
        more = ", but not everything was searched" if path.truncated else ""
        return f"no path of up to {max_depth} steps{more}"
    if not path.edges:
        return path.names[0]
    lines = []
    for here, following, edge in zip(path.names, path.names[1:], path.edges, strict=False):
        arrow = f"-[{edge.relationship}]->" if edge.source == here else f"<-[{edge.relationship}]-"
        lines.append(f"{here} {arrow} {following}")
    return "\n".join(lines)
