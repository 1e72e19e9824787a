"""The page in a real browser: every view, what can be done there, hostile texts, accessibility.

Skipped where no Chromium is installed; axe-core is used where npm has put it. ``PAGE_SCREENSHOTS``
names a folder that keeps a picture of each view.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_client import served

from agent_memory import AgentMemory

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")
VIEWS = """memories memories?q=where+is+the+safe memory/mem-1 context reviews duplicates rejections
timeline events graph graph?name=Oslo analytics agents health memories?tag=none""".split()
HOSTILE = (
    "<script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "\"><svg onload=document.title='taken'>",
    "javascript:document.title='taken'",
    "</textarea></pre></li></main><h1>Log in again</h1>",
    "<style>*{display:none}</style><link rel=stylesheet href=//evil.example>",
    "{{constructor.constructor('document.title=1')()}} ${document.title} \u202e\u2066",
    "</script><iframe srcdoc=\"<script>top.document.title='taken'</script>\"></iframe>",
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium: Any, memory: AgentMemory) -> Iterator[Any]:
    """A tab with the page of a memory, which must not complain of anything."""
    fill(memory)
    complaints: list[str] = []
    with served(memory.path) as client:
        context = chromium.new_context(viewport={"width": 1200, "height": 900})
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda said: complaints.append(f"{said.text} {said.location['url']}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{client.origin}/#token={client.token}")
        page.wait_for_selector(".rows")
        yield page
        context.close()
    assert complaints == []


def fill(memory: AgentMemory) -> None:
    """Store what makes every view show something."""
    memory.configure(event_log="full")
    memory.store(
        "The safe is behind the mirror", id="mem-1", tags=["house"], metadata={"by": "Ann"}
    )
    memory.store("the safe is behind the mirror", id="mem-2", on_duplicate="keep")
    memory.store("ユーザーは東京に住んでいる", tags=["東京"])
    memory.store("المستخدم يفضل القهوة بدون سكر", tags=["قهوة"])
    memory.promote("mem-1")
    memory.graph.add("Ann", "lives in", "Oslo")
    memory.reject("purple elephants", reason="there are none")
    memory.search("where is the safe?")


def show(page: Any, view: str) -> None:
    page.evaluate("view => { location.hash = `#/${view}` }", view)
    page.wait_for_function(
        "view => document.querySelector('main').dataset.shows === `#/${view}`", arg=view
    )


def axe() -> str | None:
    """Return axe-core, where npm has put it."""
    npm = shutil.which("npm")
    folders = [Path.cwd() / "node_modules", *map(Path, os.environ.get("NODE_PATH", "").split(":"))]
    if npm:
        done = subprocess.run([npm, "root", "-g"], capture_output=True, text=True, timeout=30)
        folders.append(Path(done.stdout.strip()))
    files = [folder / "axe-core" / "axe.min.js" for folder in folders]
    return next((file.read_text("utf-8") for file in files if file.is_file()), None)


def test_every_view_fits_a_phone_and_a_desk_in_both_colours(tab: Any) -> None:
    pictures = os.environ.get("PAGE_SCREENSHOTS")
    for place, view in enumerate(VIEWS):
        for width, colours in ((1200, "light"), (360, "dark")):
            tab.set_viewport_size({"width": width, "height": 800})
            tab.emulate_media(color_scheme=colours)
            show(tab, view)
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
            assert tab.locator("h1").count() == 1
            if pictures:
                tab.screenshot(path=f"{pictures}/{place:02}-{colours}.png", full_page=True)


def test_no_view_keeps_anybody_out(tab: Any) -> None:
    script = axe()
    if script is None:
        pytest.skip("axe-core is not installed: npm install -g axe-core")
    session = tab.context.new_cdp_session(tab)  # the page's own rules let no other script in
    session.send("Runtime.evaluate", {"expression": f"{script};0"})
    rules = "axe.run().then(r => r.violations.map(v => v.id + ': ' + v.nodes[0].html))"
    for view in VIEWS:
        for colours in ("light", "dark"):
            tab.emulate_media(color_scheme=colours)
            show(tab, view)
            tab.evaluate(
                "() => { for (const e of document.querySelectorAll('details')) e.open = true }"
            )
            answer = session.send(
                "Runtime.evaluate",
                {"expression": rules, "awaitPromise": True, "returnByValue": True},
            )
            assert answer["result"]["value"] == [], (view, colours)


def test_a_memory_is_found_edited_and_that_undone_by_keyboard(
    tab: Any, memory: AgentMemory
) -> None:
    tab.keyboard.press("/")
    tab.keyboard.type("where is the safe?")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("ol.rows")
    tab.locator("h1").focus()
    tab.keyboard.press("j")
    tab.keyboard.press("Enter")
    tab.get_by_role("button", name="Edit").press("Enter")
    tab.get_by_label("Text").fill("The safe is under the stairs")
    tab.get_by_role("button", name="Save").press("Enter")
    tab.wait_for_selector("ins >> text=under the stairs")
    changed = [row for row in memory.list_recent() if row.content.endswith("stairs")]
    assert [row.version for row in changed] == [2]
    tab.locator("#notice").get_by_role("button", name="Undo").press("Enter")
    tab.wait_for_selector(".whole >> text=behind the mirror")
    assert memory.get(changed[0].id).content.lower() == "the safe is behind the mirror"  # type: ignore[union-attr]


def test_archiving_forgetting_and_erasing(tab: Any, memory: AgentMemory) -> None:
    show(tab, "memory/mem-1")
    tab.get_by_role("button", name="Archive").click()
    tab.get_by_role("button", name="Bring back").click()
    tab.get_by_role("button", name="Forget").click()
    tab.wait_for_selector("text=This memory was forgotten")
    tab.get_by_role("button", name="Undo this change").click()
    tab.get_by_role("button", name="Erase for good").click()
    tab.keyboard.press("Escape")
    assert memory.get("mem-1") is not None
    tab.get_by_role("button", name="Erase for good").click()
    tab.get_by_role("button", name="Go on").click()
    last = tab.get_by_role("dialog").get_by_role("button", name="Erase for good")
    assert last.is_disabled()
    tab.get_by_label("The id is mem-1").fill("mem-1")
    last.click()
    tab.wait_for_selector("dialog >> text=Nothing of it is left in the file.")
    tab.get_by_role("button", name="Close", exact=True).click()
    assert memory.get("mem-1") is None


def test_duplicates_are_merged_by_choice(tab: Any, memory: AgentMemory) -> None:
    show(tab, "duplicates")
    tab.get_by_role("button", name="Keep this one").nth(1).click()
    tab.wait_for_selector("text=No two memories say the same.")
    kept = memory.get("mem-2")
    assert (memory.get("mem-1"), kept.tags if kept else None) == (None, ["house"])


def test_hostile_texts_are_texts_and_stay_in_their_place(tab: Any, memory: AgentMemory) -> None:
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    items = [
        {
            "content": f"{text} {number}",
            "tags": [text[:50]],
            "metadata": {text: text},
            "session_id": text[:90],
        }
        for number in range(25)
        for text in HOSTILE
    ]
    ids = memory.store_many(items, on_duplicate="keep")
    memory.reject("green elephants", reason=HOSTILE[0])
    views = ["memories?limit=200", "timeline?limit=200", "events", "rejections", "analytics"]
    for view in [*views, *(f"memory/{memory_id}" for memory_id in ids[: len(HOSTILE)])]:
        show(tab, view)
        assert tab.locator("h1").all_inner_texts() != ["Log in again"]
        assert tab.locator("main script, main iframe, main style, main link, main img").count() == 0
        assert "taken" not in tab.title()
    show(tab, "memories?limit=200")
    shown = tab.locator(".rows .content").all_text_contents()
    assert {*shown} >= {item["content"] for item in items[-8:]}
    origin = tab.url.partition("/#")[0]
    assert [url for url in asked if not url.startswith(origin)] == []


def test_a_page_elsewhere_reads_and_changes_nothing(
    tab: Any, chromium: Any, memory: AgentMemory
) -> None:
    origin = tab.url.partition("/#")[0]
    attempt = """async (origin) => {
      const outcomes = [];
      for (const options of [{}, {credentials: 'include'}, {method: 'POST', credentials: 'include',
          mode: 'no-cors', body: '{"id":"mem-1"}'}]) {
        try {
          const answer = await fetch(`${origin}/api/forget`, options);
          outcomes.push(await answer.text());
        } catch { outcomes.push(''); }
      }
      return outcomes;
    }"""
    framed = f"<!doctype html><iframe src='{origin}/'></iframe>"
    # The second is another user's server on this machine: for cookies it is the same site.
    for address in ("http://evil.example/", "http://127.0.0.1:9/"):
        stranger = tab.context.new_page()
        stranger.route(address, lambda route: route.fulfill(body=framed, content_type="text/html"))
        stranger.goto(address)
        assert stranger.evaluate(attempt, origin) == ["", "", ""]
        assert stranger.frames[1].url.startswith("chrome-error:"), "it is shown in a frame"
    assert memory.get("mem-1") is not None
    fresh = chromium.new_context().new_page()
    fresh.goto(f"{origin}/")
    fresh.wait_for_selector("text=this browser was not let in")
    fresh.context.close()
