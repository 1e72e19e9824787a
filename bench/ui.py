"""How soon the page shows something, and how much is sent for it.

    python -m bench.ui                       1,000 and 100,000 memories
    python -m bench.ui --sizes 1000 --rounds 3

Each round has its own server, as `agent-memory ui` starts it, and a real Chromium with an empty
cache. The first view is there when its list is: the page's files, the exchange of the token, the
figures and the first 50 memories. The server's share of the time is shown beside it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, Final

from playwright.sync_api import Page, sync_playwright

from agent_memory import AgentMemory
from bench.machine import describe_machine
from bench.workload import NOW, Workload

PROGRAM: Final = str(Path(sys.executable).with_name("agent-memory"))
CHROMIUM: Final = shutil.which("chromium") or shutil.which("google-chrome")
BATCH: Final = 5_000
_SERVED: Final = """() => performance.getEntriesByType('resource')
    .filter((each) => each.name.includes('/api/'))
    .reduce((sum, each) => sum + each.responseEnd - each.requestStart, 0)"""


def fill(root: str, count: int) -> list[str]:
    """Store memories and return questions about some of them."""
    workload = Workload()
    items = list(workload.memories(count))
    with AgentMemory("bench", root=root, clock=lambda: NOW) as memory:
        for start in range(0, count, BATCH):
            memory.store_many(items[start : start + BATCH])
    return [workload.question(str(item["content"])) for item in items[:: max(1, count // 50)]]


def shown(page: Page, *, since: float = 0.0) -> float:
    """Wait for a view, and return the milliseconds to it from the navigation or from ``since``."""
    page.wait_for_selector("main[data-shows^='#']")
    marks = "performance.getEntriesByName('shown').at(-1).startTime"
    return float(page.evaluate(marks)) - since


def measure_round(browser: Any, root: str, questions: list[str]) -> dict[str, float]:  # noqa: ANN401
    """Start a server, open its page and search; return milliseconds and bytes."""
    words = [PROGRAM, "--root", root, "--agent", "bench", "ui", "--no-open"]
    sent = 0

    def note(response: Any) -> None:  # noqa: ANN401 - of playwright
        nonlocal sent
        sent += int(response.headers.get("content-length", 0))

    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
        if server.stderr is None:
            raise SystemExit("the server says nothing")
        address = server.stderr.readline().split()[4]
        try:
            page = browser.new_context().new_page()
            page.on("response", note)
            page.goto(address)
            figures = {"first view": shown(page)}
            figures["of it, the server"] = float(page.evaluate(_SERVED))
            figures["bytes of it"] = sent
            searches = []
            for question in questions:
                page.evaluate("document.querySelector('main').dataset.shows = ''")
                page.fill("#search", question)
                start = float(page.evaluate("performance.now()"))
                page.press("#search", "Enter")
                searches.append(shown(page, since=start))
            figures["first search"], figures["a search"] = searches[0], median(searches[1:])
            figures["bytes of a search"] = (sent - figures["bytes of it"]) / len(questions)
            page.context.close()
        finally:
            server.terminate()
    return figures


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if CHROMIUM is None:
        raise SystemExit("no Chromium is installed")
    print(describe_machine())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        for size in options.sizes:
            with tempfile.TemporaryDirectory() as root:
                questions = fill(root, size)[:10]
                rounds = [measure_round(browser, root, questions) for _ in range(options.rounds)]
            print(f"{size:,} memories")
            for name in rounds[0]:
                unit = "" if name.startswith("bytes") else " ms"
                print(f"  {name:20}{median(each[name] for each in rounds):12,.0f}{unit}")
        browser.close()


if __name__ == "__main__":
    main()
