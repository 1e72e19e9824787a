"""The page in a real browser: every view, what can be done there, hostile texts, accessibility.

Skipped where no Chromium is installed; axe-core is used where npm has put it. ``PAGE_SCREENSHOTS``
names a folder that keeps a picture of each view, and ``PAGE_HOSTILE`` how many hostile texts there
are: 10,000 in a long run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hostile_texts import HOSTILE, hostile_texts
from page_client import in_question, served

from agent_memory import AgentMemory

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")
VIEWS = """memories memories?q=where+is+the+safe memory/mem-1 context reviews duplicates rejections
timeline events graph graph?name=Oslo analytics agents health memories?tag=none""".split()
HOSTILE_TEXTS = int(os.environ.get("PAGE_HOSTILE", "200"))


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
    memory.graph.add("Ann", "lives in", "Oslo", memory_id="mem-1")
    with AgentMemory("ann", root=memory.path.parent.parent) as other:
        other.store("Ann's safe is under the stairs", id="mem-ann")
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
                name = re.sub(r"\W+", "-", view)
                path = f"{pictures}/{place:02}-{name}-{width}-{colours}.png"
                tab.screenshot(path=path, full_page=True)


def test_the_first_view_waits_for_nothing_that_it_does_not_show(tab: Any) -> None:
    asked = tab.evaluate("""() => performance.getEntriesByType('resource')
        .map(each => [new URL(each.name).pathname, each.startTime, each.responseEnd])""")
    scripts = sorted(name.removeprefix("/") for name, *_ in asked if name.endswith(".js"))
    assert scripts == ["api.js", "app.js", "dom.js", "memories.js", "paged.js", "rows.js", "why.js"]
    preloaded = tab.locator("link[rel=modulepreload]").evaluate_all(
        "links => links.map(each => each.getAttribute('href'))"
    )
    assert sorted([*preloaded, "app.js"]) == scripts
    ((listed, _),) = [times for name, *times in asked if name == "/api/memories"]
    ((_, known),) = [times for name, *times in asked if name == "/api/overview"]
    assert listed < known, "the list is asked for while the overview is on its way"


def test_no_view_keeps_anybody_out(tab: Any) -> None:
    script = axe()
    if script is None:
        pytest.skip("axe-core is not installed: npm install -g axe-core")
    session = tab.context.new_cdp_session(tab)  # the page's own rules let no other script in
    session.send("Runtime.evaluate", {"expression": f"{script};0"})
    rules = "axe.run().then(r => r.violations.map(v => v.id + ': ' + v.nodes[0].html))"
    for view in VIEWS:
        for width, colours in ((1200, "light"), (1200, "dark"), (360, "light"), (360, "dark")):
            tab.set_viewport_size({"width": width, "height": 800})
            tab.emulate_media(color_scheme=colours)
            show(tab, view)
            tab.evaluate(
                "() => { for (const e of document.querySelectorAll('details')) e.open = true }"
            )
            answer = session.send(
                "Runtime.evaluate",
                {"expression": rules, "awaitPromise": True, "returnByValue": True},
            )
            assert answer["result"]["value"] == [], (view, width, colours)


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
    tab.get_by_role("button", name="Unarchive").click()
    tab.get_by_role("button", name="Forget").click()
    tab.wait_for_selector("text=This memory was forgotten")
    tab.get_by_role("button", name="Undo this change").click()
    tab.get_by_role("button", name="Erase for good").click()
    tab.keyboard.press("Escape")
    assert memory.get("mem-1") is not None
    tab.get_by_role("button", name="Erase for good").click()
    tab.get_by_role("button", name="Continue").click()
    last = tab.get_by_role("dialog").get_by_role("button", name="Erase for good")
    assert last.is_disabled()
    tab.get_by_label("The id is mem-1").fill("mem-1")
    last.click()
    tab.wait_for_selector("dialog >> text=Nothing of it is left in the memory.")
    tab.get_by_role("button", name="Close", exact=True).click()
    assert memory.get("mem-1") is None


def test_what_is_being_done_does_not_ask_for_what_was_erased_meanwhile(
    tab: Any, memory: AgentMemory
) -> None:
    show(tab, "memory/mem-2")
    tab.evaluate("""() => {
        const real = window.fetch;
        window.fetch = async (path, options) => {
            const answer = await real(path, options);
            if (path !== "/api/archive") return answer;
            await new Promise((resume) => setTimeout(resume, 3_000));
            window.isAnswered = true;
            return answer;
        };
    }""")
    tab.get_by_role("button", name="Archive").click()
    tab.get_by_role("button", name="Erase for good").click()
    tab.get_by_role("button", name="Continue").click()
    tab.get_by_label("The id is mem-2").fill("mem-2")
    tab.get_by_role("dialog").get_by_role("button", name="Erase for good").click()
    tab.wait_for_selector("dialog >> text=Nothing of it is left in the memory.")
    tab.wait_for_function("window.isAnswered")
    tab.wait_for_timeout(500)  # for what would be asked now, of which the console would complain
    tab.get_by_role("button", name="Close", exact=True).click()
    assert memory.get("mem-2") is None


def test_duplicates_are_merged_by_choice_and_parted_again(tab: Any, memory: AgentMemory) -> None:
    show(tab, "duplicates")
    tab.get_by_role("button", name="Keep this one").nth(1).click()
    tab.wait_for_selector("text=No two memories say the same.")
    kept = memory.get("mem-2")
    assert (memory.get("mem-1"), kept.tags if kept else None) == (None, ["house"])
    memory.store("stored since, by an agent")
    tab.locator("#notice").get_by_role("button", name="Undo").click()
    tab.wait_for_selector("text=1 group")
    parted = memory.get("mem-2")
    assert (memory.get("mem-1") is None, parted.tags if parted else None) == (False, [])


def test_what_is_recommended_is_done_by_its_button_and_undone(
    tab: Any, memory: AgentMemory
) -> None:
    show(tab, "analytics")
    for button, told in (("Merge", "Kept one, and forgot 1."), ("Archive", "Archived 1 memory.")):
        tab.get_by_role("button", name=f"{button}: mem-2").first.click()
        tab.wait_for_selector(f"#notice >> text={told}")
        merged = memory.get("mem-2")
        assert merged is None or merged.archived
        tab.locator("#notice").get_by_role("button", name="Undo").click()
        tab.wait_for_selector("#notice >> text=Undone.")
        tab.wait_for_selector("role=button[name='Merge: mem-2']")
        back = memory.get("mem-2")
        assert back is not None
        assert not back.archived


def test_what_was_kept_is_asked_again_whatever_came_since(tab: Any, memory: AgentMemory) -> None:
    in_question(memory, "Lunch is at noon")
    show(tab, "reviews")
    tab.get_by_role("button", name="Keep it").click()
    tab.wait_for_selector("text=Nothing is under review.")
    memory.store("stored since, by an agent")
    tab.locator("#notice").get_by_role("button", name="Undo").click()
    tab.wait_for_selector("role=button[name='Keep it']")
    assert [review.content for review in memory.reviews()] == ["Lunch is at noon"]
    assert memory.search("stored since")[0].memory.content == "stored since, by an agent"


def test_a_memory_tells_who_recalled_it_and_what_it_says(tab: Any, memory: AgentMemory) -> None:
    show(tab, "memory/mem-1")
    recalled = tab.locator("section", has=tab.get_by_role("heading", name="Recalled by"))
    assert "where is the safe?" in recalled.inner_text()
    assert memory.session_id in recalled.inner_text()
    graph = tab.locator("section", has=tab.get_by_role("heading", name="In the graph"))
    assert "lives_in" in graph.inner_text()
    graph.get_by_role("link", name="Oslo").first.click()
    tab.wait_for_selector("h2 >> text=Oslo")
    memory.configure(event_log="brief")
    show(tab, "memory/mem-2")
    assert "Questions are not kept." in tab.locator("main").inner_text()


def test_lists_are_sorted_and_go_on(tab: Any, memory: AgentMemory) -> None:
    stored = memory.store_many(
        [{"content": f"fact {n}", "importance": "high" if n == 7 else "low"} for n in range(60)]
    )
    show(tab, "memories")
    tab.get_by_text("Filters").click()
    tab.get_by_label("Order").select_option("importance")
    tab.get_by_role("button", name="Apply").click()
    tab.wait_for_selector(".status >> text=most important first")
    assert tab.locator(".rows .content").first.inner_text() == "fact 7"
    for view, row in (("memories?order=oldest", ".rows > li"), ("timeline", ".history > li")):
        show(tab, view)
        assert tab.locator(row).count() == 50
        memory.delete(stored.pop())  # what is changed meanwhile repeats no row
        tab.get_by_role("button", name="Show more").click()
        tab.wait_for_selector(".status >> text=shown")
        links = [each.get_attribute("href") for each in tab.locator(f"{row} a.row").all()]
        assert len(links) > 60
        if view != "timeline":
            assert len({*links}) == len(links)


def test_a_large_graph_is_told_in_parts(tab: Any, memory: AgentMemory) -> None:
    for number in range(120):
        memory.graph.add(f"Person {number}", "works in", "Bergen")
    show(tab, "graph?name=Bergen")
    assert tab.locator(".graph circle").count() == 25
    assert tab.locator("tbody tr").count() == 100
    tab.get_by_role("button", name="Show more").click()
    tab.wait_for_selector(".status >> text=120 shown")
    names = tab.locator("tbody tr td:first-child").all_inner_texts()
    assert names == [f"Person {number}" for number in range(120)]
    show(tab, "graph")
    tab.get_by_role("button", name="Show more").click()
    tab.wait_for_selector(".status >> text=100 shown")


def test_another_agent_is_shown_in_this_tab_alone(tab: Any, memory: AgentMemory) -> None:
    show(tab, "agents")
    assert tab.locator("li[aria-current=true]").inner_text().startswith("bob (shown here)")
    facts = tab.locator("li", has_text="ann").locator(".about > *").all_inner_texts()
    assert facts[0] == "1 memory"
    assert facts[2].startswith("used ")
    tab.get_by_role("button", name="Show ann").click()
    tab.wait_for_selector("text=Ann's safe is under the stairs")
    assert tab.locator("#agent").inner_text() == "ann"
    tab.get_by_text("Ann's safe is under the stairs").click()
    tab.get_by_role("button", name="Archive").click()
    tab.wait_for_selector("text=Unarchive")
    with AgentMemory("ann", root=memory.path.parent.parent) as other:
        assert other.info().archived_count == 1
        assert memory.info().archived_count == 0
    second = tab.context.new_page()
    second.goto(tab.url.partition("#")[0])
    second.wait_for_selector(".rows")
    assert second.locator("#agent").inner_text() == "bob"
    second.evaluate("sessionStorage.setItem('agent-memory-agent', 'gone')")
    second.reload()
    second.wait_for_selector(".rows")
    assert second.locator("#agent").inner_text() == "bob"


def test_an_undo_that_waits_is_of_the_agent_that_was_shown(tab: Any, memory: AgentMemory) -> None:
    show(tab, "memory/mem-2")
    tab.get_by_role("button", name="Archive").click()
    tab.wait_for_selector("text=Unarchive")
    tab.evaluate("""() => {
        const real = window.fetch;
        window.fetch = async (path, options) => {
            if (path === "/api/promote") await new Promise((go) => setTimeout(go, 3_000));
            return real(path, options);
        };
    }""")
    tab.get_by_role("button", name="Add to the scratchpad").click()
    tab.locator("#notice").get_by_role("button", name="Undo").click()
    show(tab, "agents")
    tab.get_by_role("button", name="Show ann").click()
    tab.wait_for_selector("text=Ann's safe is under the stairs")
    back = memory.get("mem-2")
    assert back is not None
    assert not back.archived


def test_hostile_texts_are_texts_and_stay_in_their_place(tab: Any, memory: AgentMemory) -> None:
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    items = [
        {
            "content": text,
            "tags": [text[:50]],
            "metadata": {text[:90]: text},
            "session_id": f"session {text[:80]}",
        }
        for text in hostile_texts(HOSTILE_TEXTS)
    ]
    ids = memory.store_many(items, on_duplicate="keep")
    memory.reject("green elephants", reason=HOSTILE[0])
    memory.graph.add(HOSTILE[1], HOSTILE[0][:40], HOSTILE[2], memory_id=ids[0])
    memory.search(HOSTILE[0])
    samples = ids[: len(HOSTILE)] + ids[len(HOSTILE) :: 200]
    views = ["events", "rejections", "analytics", "graph", f"graph?name={quote(HOSTILE[1])}"]
    for view in [*views, *(f"memory/{memory_id}" for memory_id in samples)]:
        show(tab, view)
        assert_nothing_was_taken(tab)
    for view, text in (("memories", ".rows .content"), ("timeline", ".history .content")):
        show(tab, f"{view}?limit=200")
        while (more := tab.get_by_role("button", name="Show more")).is_visible():
            count = tab.locator(text).count()
            more.click()
            grown = "([text, count]) => document.querySelectorAll(text).length > count"
            tab.wait_for_function(grown, arg=[text, count])
        assert_nothing_was_taken(tab)
        shown = {content.removesuffix(" …") for content in tab.locator(text).all_text_contents()}
        assert {memory.get(each).content[:400] for each in ids} <= shown  # type: ignore[union-attr]
    origin = tab.url.partition("/#")[0]
    assert [url for url in asked if not url.startswith(origin)] == []


def assert_nothing_was_taken(tab: Any) -> None:
    assert tab.locator("h1").all_inner_texts() != ["Log in again"]
    assert tab.locator("h1").count() == 1
    planted = "script iframe style link img base meta math".split()
    assert tab.locator(", ".join(f"main {tag}" for tag in planted)).count() == 0
    assert "taken" not in tab.title().lower()


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
    fresh.wait_for_selector("text=this browser is not authorized")
    fresh.context.close()
