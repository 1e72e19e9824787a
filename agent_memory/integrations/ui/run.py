"""Runs the page: opens the memory, starts the server, and shows a browser the address."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import webbrowser
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Final

from agent_memory import AgentMemory
from agent_memory.integrations.loopback import listening_socket, stopped_by_sigterm
from agent_memory.integrations.ui import reads, writes
from agent_memory.integrations.ui.admission import Admission
from agent_memory.integrations.ui.agents import AgentPlace, PageAgents
from agent_memory.integrations.ui.handler import PageHandler, Read, Write
from agent_memory.integrations.ui.page_files import page_files
from agent_memory.integrations.ui.queries import Query
from agent_memory.integrations.ui.server import REQUEST_SECONDS, BoundedServer
from agent_memory.runtime.temporary_files import temporary_folder

_READS: Final[Mapping[str, Read]] = {
    "overview": reads.overview,
    "memories": reads.memories,
    "search": reads.search,
    "memory": reads.one_memory,
    "recalls": reads.recalls,
    "context": reads.context,
    "reviews": reads.reviews,
    "duplicates": reads.duplicates,
    "rejections": reads.rejections,
    "timeline": reads.timeline,
    "events": reads.events,
    "statistics": reads.statistics,
    "entities": reads.entities,
    "entity": reads.entity,
    "health": reads.health,
}
_WRITES: Final[Mapping[str, Write]] = {
    "open": writes.open_agent,
    "update": writes.update,
    "archive": writes.archive,
    "unarchive": writes.unarchive,
    "forget": writes.forget,
    "promote": writes.promote,
    "demote": writes.demote,
    "undo": writes.undo,
    "erase": writes.erase,
    "approve": writes.approve,
    "dismiss": writes.dismiss,
    "merge": writes.merge,
    "reject": writes.reject,
    "lift": writes.lift,
    "backup": writes.backup,
    "check": writes.check,
    "repair": writes.repair,
}


def run(
    place: Path | AgentPlace,
    *,
    port: int = 0,
    read_only: bool = False,
    open_browser: bool = True,
) -> None:
    """Serve the page of the memory at ``place`` until Ctrl-C or SIGTERM.

    Port 0 takes a free one. The address is printed on stderr, and shown to a browser. Raises
    ``AgentNotFound`` if there is no memory, and ``ConfigurationError`` if the port is taken.
    """
    with stopped_by_sigterm(), page_server(place, port=port, read_only=read_only) as server:
        address = server.address()
        advice = "it works once, in one browser; Ctrl-C ends it"
        print(f"the page is at {address} ({advice})", file=sys.stderr, flush=True)  # noqa: T201
        with opened_browser(address) if open_browser else contextlib.nullcontext():
            server.serve_forever()


class PageServer(BoundedServer):
    """The page's server, and whom it lets in."""

    admission: Admission

    def address(self) -> str:
        """Return the page's address, with the token that lets in one browser."""
        return f"http://127.0.0.1:{self.server_address[1]}/#token={self.admission.token}"


@contextlib.contextmanager
def page_server(
    place: Path | AgentPlace,
    *,
    port: int = 0,
    read_only: bool = False,
    request_seconds: float = REQUEST_SECONDS,
) -> Iterator[PageServer]:
    """Give the body a listening server; ``serve_forever`` makes it answer."""
    with contextlib.ExitStack() as stack:
        listening = listening_socket("127.0.0.1", port, advice="another --port")
        stack.callback(listening.close)
        shown = PageAgents(place, is_read_only=read_only)
        stack.callback(shown.close)
        # The first read takes three times as long as the next: do it before anybody waits.
        if not read_only:
            with shown.writing(None) as memory:
                writes.note_duplicates(memory)
        with shown.reading(None) as memory:
            for first_look in (reads.memories, reads.overview):
                first_look(memory, Query(""))

        def overview(memory: AgentMemory, query: Query) -> object:
            can_write = shown.can_write(memory)
            facts = {"read_only": not can_write, "is_locked": read_only}
            return {**reads.overview(memory, query), **facts}

        def agents(_memory: AgentMemory, _query: Query) -> object:
            return {"agents": shown.listed()}

        all_reads: Mapping[str, Read] = {**_READS, "overview": overview, "agents": agents}
        number = listening.getsockname()[1]
        guard = Admission(number)

        class Handler(PageHandler):
            """Answers from these agents' memories."""

            admission = guard
            agents = shown
            files = page_files()
            reads = all_reads
            writes = _WRITES

        server = PageServer(listening, Handler, request_seconds=request_seconds)
        server.admission = guard
        stack.callback(server.server_close)
        yield server


@contextlib.contextmanager
def opened_browser(address: str) -> Iterator[None]:
    """Show a browser the address, by a private file that redirects to it.

    All users of a machine can read the arguments of every process, so a browser is not started with
    the token in them.
    """
    folder = Path(tempfile.mkdtemp(prefix="agent-memory-", dir=temporary_folder()))
    try:
        page = folder / "open.html"
        page.write_text(
            '<!doctype html><meta charset="utf-8"><title>agent-memory</title>'
            f'<meta http-equiv="refresh" content="0; url={escape(address)}">'
            f'<a href="{escape(address)}">Open the page</a>\n',
            encoding="utf-8",
        )
        webbrowser.open(page.as_uri())
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
