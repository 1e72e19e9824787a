// The views by their names, and how an address selects one of them.

import { begin, chooseAgent, chosenAgent, get, getEarly } from "./api.js";
import { el, empty } from "./dom.js";
import { memories } from "./memories.js";

/** A view whose file is loaded when it is first shown: the first view waits for none of them. */
const of = (file, name) => async (given) => (await import(file))[name](given);

const VIEWS = {
  memories: { title: "Memories", show: memories },
  memory: { title: "Memory", show: of("./memory.js", "memory"), isListed: false },
  context: { title: "Context", show: of("./context.js", "context") },
  reviews: { title: "Reviews", show: of("./reviews.js", "reviews") },
  duplicates: { title: "Duplicates", show: of("./reviews.js", "duplicates") },
  rejections: { title: "Rejections", show: of("./reviews.js", "rejections") },
  timeline: { title: "Timeline", show: of("./timeline.js", "timeline") },
  events: { title: "Events", show: of("./timeline.js", "events") },
  graph: { title: "Graph", show: of("./graph.js", "graph") },
  analytics: { title: "Analytics", show: of("./analytics.js", "analytics") },
  agents: { title: "Agents", show: of("./health.js", "agents") },
  health: { title: "Health", show: of("./health.js", "health") },
};

export const state = { overview: null };
const main = document.getElementById("main");
let shown = 0;

/** Parse an address: the view, its subject, and the fields. */
function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  return {
    name: VIEWS[name] ? name : "memories",
    subject: decodeURIComponent(rest.join("/")),
    fields: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** Show the view of the address. Its heading gets the focus, for screen readers. */
async function show({ keepFocus = false } = {}) {
  const turn = (shown += 1);
  const address = location.hash;
  const { name, subject, fields } = route();
  const { title, show: render } = VIEWS[name];
  for (const anchor of document.querySelectorAll("#views a")) {
    if (anchor.dataset.view === name) {
      anchor.setAttribute("aria-current", "page");
      anchor.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else anchor.removeAttribute("aria-current");
  }
  document.title = `${title} · ${state.overview.agent_id}`;
  const slow = setTimeout(() => main.setAttribute("aria-busy", "true"), 300);
  let nodes;
  try {
    const refresh = () => show({ keepFocus: true });
    nodes = await render({ subject, fields, overview: state.overview, refresh, isShown: () => turn === shown });
  } catch (error) {
    nodes = failed(error);
  }
  clearTimeout(slow);
  if (turn !== shown) return; // another view was requested meanwhile
  main.removeAttribute("aria-busy");
  const heading = el("h1", { tabindex: "-1" }, title);
  main.replaceChildren(heading, ...[nodes].flat(9).filter(Boolean));
  main.dataset.shows = address;
  performance.mark("shown"); // for measurements: when the first view was shown
  if (!keepFocus) heading.focus({ preventScroll: true });
  if (!keepFocus) scrollTo(0, 0);
}

function failed(error) {
  const advice = error.status === 401 || error.status === 403
    ? "Run `agent-memory ui` again, and open the address that it prints."
    : "Try again, or look at the terminal where `agent-memory ui` runs.";
  return [empty(error.message, advice)];
}

function listViews() {
  const list = document.getElementById("views");
  list.replaceChildren(...Object.entries(VIEWS).filter(([, view]) => view.isListed !== false)
    .map(([name, { title }]) => el("li", {}, el("a", { href: `#/${name}`, "data-view": name }, title))));
}

/** Additional keys: / goes to the search, j and k through a list. */
function onKey(event) {
  const isTyping = event.target.closest("input, textarea, select, dialog");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    const search = document.getElementById("search");
    if (search) search.focus();
    else location.hash = "#/memories";
  } else if (event.key === "j" || event.key === "k") {
    const rows = [...document.querySelectorAll(".rows a.row")];
    const next = rows.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
    rows[Math.max(0, Math.min(next, rows.length - 1))]?.focus();
  }
}

/** Facts about the whole memory; the first list need not request them again. */
async function overviewOf() {
  const overview = await get("overview");
  let isNew = true;
  const refreshed = async () => {
    if (!isNew) state.overview = await overviewOf();
    isNew = false;
    return state.overview;
  };
  return { ...overview, refreshed };
}

async function start() {
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  try {
    await begin();
    const { name, fields } = route();
    if (name === "memories" && !fields.q) getEarly("memories", fields);
    state.overview = await overviewOf();
  } catch (error) {
    if (chosenAgent() && error.code === "AGENT_NOT_FOUND") { // it existed when it was chosen
      chooseAgent(null);
      await start();
      return;
    }
    main.replaceChildren(el("h1", {}, "Not authorized"), ...failed(error));
    return;
  }
  document.getElementById("agent").textContent = state.overview.agent_id;
  document.getElementById("mode").hidden = !state.overview.read_only;
  listViews();
  addEventListener("hashchange", () => show());
  addEventListener("keydown", onKey);
  await show();
}

start();
