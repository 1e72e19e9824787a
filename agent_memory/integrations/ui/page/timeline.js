// What happened, newest first: changes, which can be undone, and the events of the log.

import { act } from "./actions.js";
import { get, post } from "./api.js";
import { button, count, el, empty, field, text, time } from "./dom.js";
import { paged } from "./paged.js";
import { href } from "./rows.js";

const WORDS = { ADD: "Stored", UPDATE: "Changed", DELETE: "Forgotten" };
const POLL_MILLISECONDS = 3_000;

export async function timeline({ fields, overview, refresh }) {
  const load = async (before) => {
    const { changes, has_more: hasMore } = await get("timeline", { limit: fields.limit, before });
    return { rows: changes, hasMore };
  };
  const page = await load(null);
  const moment = el("input", { type: "datetime-local", required: true });
  const past = el("form", {
    class: "inline",
    onsubmit: (event) => {
      event.preventDefault();
      location.hash = `#/memories?as_of=${encodeURIComponent(new Date(moment.value).toISOString())}`;
    },
  }, field("Show the memories as they were at", moment), el("button", { type: "submit" }, "Show"));
  if (!page.rows.length) return empty("Nothing has happened yet.", "Each memory that is stored, changed or forgotten is listed here.");
  return [
    past,
    paged(el("ol", { class: "history" }), page, {
      item: (entry) => change(entry, { overview, refresh }),
      next: (last) => load(last.change_id),
    }),
  ];
}

function change(entry, { overview, refresh }) {
  const fields = entry.event === "UPDATE" ? entry.fields.join(", ") : "";
  const content = entry.content + (entry.is_cut ? " …" : "") || fields;
  return el("li", {},
    el("div", { class: "about" }, el("strong", {}, WORDS[entry.event] ?? entry.event), time(entry.changed_at, { withTime: true }),
      entry.session_id && text(`session ${entry.session_id}`),
      overview.read_only ? null : button("Undo", () => act("Undone.", () => post("undo", { change_id: entry.change_id }), refresh), { "aria-label": `Undo: change ${entry.change_id}` })),
    el("a", { class: "row", href: href(entry.memory_id) }, text(content || entry.memory_id, { class: "content" })));
}

export async function events({ isShown }) {
  const first = await get("events");
  if (first.event_log === "off" && !first.events.length) {
    return empty("Events are not recorded.", "To see here what agents store and search: ", el("code", {}, "agent-memory configure event_log brief"), ", or ", el("code", {}, "full"), " with texts.");
  }
  const list = el("ol", { class: "history" });
  const status = el("p", { class: "status", role: "status" });
  let latest = "";
  const render = (rows) => {
    const newest = rows.length ? JSON.stringify(rows[0]) : "";
    if (newest === latest) return;
    latest = newest;
    list.replaceChildren(...rows.map(event));
    status.textContent = `${count(rows.length, "event")}, the newest first. New ones appear automatically.`;
  };
  render(first.events);
  const poll = async () => {
    if (!isShown()) return;
    try {
      if (!document.hidden) render((await get("events")).events);
      setTimeout(poll, POLL_MILLISECONDS);
    } catch (error) {
      status.textContent = `${error.message} Reload the page.`;
    }
  };
  setTimeout(poll, POLL_MILLISECONDS);
  return [status, list];
}

const event = (each) => el("li", {},
  el("div", { class: "about" }, el("strong", {}, each.name.replace(/^memory:/, "")), time(each.timestamp, { withTime: true }), each.session_id && text(`session ${each.session_id}`)),
  el("details", {}, el("summary", {}, "Details"), el("pre", { dir: "auto" }, JSON.stringify(each.data, null, 2))));
