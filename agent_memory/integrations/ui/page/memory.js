// One memory: its text, its fields, its history, and its actions.

import { act, ask, erase } from "./actions.js";
import { get, post } from "./api.js";
import { button, count, el, empty, facts, field, link, select, text, time } from "./dom.js";
import { entityLink, relationships } from "./graph.js";
import { href, rows } from "./rows.js";

const KINDS = [["core", "core"], ["learning", "learning"], ["task", "task"]];
const IMPORTANCES = [["high", "high"], ["medium", "medium"], ["low", "low"]];

export async function memory({ subject, fields, overview, refresh }) {
  const [found, recalls] = await Promise.all([get("memory", { id: subject, as_of: fields.as_of }), get("recalls", { id: subject })]);
  const readOnly = overview.read_only;
  if (!found.memory) {
    return [
      empty("This memory was forgotten.", "Its history is still here: undo the last change to bring it back."),
      changes(found.history, { readOnly, refresh }),
    ];
  }
  const current = found.memory;
  return [
    el("article", { class: current.archived ? "memory archived" : "memory" },
      text(current.content, { class: "whole" }),
      readOnly ? null : buttons(found, { overview, refresh })),
    about(current, found.is_in_scratchpad),
    recalled(recalls, current),
    el("section", {}, el("h2", {}, "History"), changes(found.history, { readOnly, refresh })),
    inGraph(found.graph),
    same(found.same),
    before(found.before, current),
  ];
}

function about(current, isInScratchpad) {
  const metadata = Object.keys(current.metadata).length
    ? el("pre", { dir: "auto", tabindex: "0", role: "group", "aria-label": "Metadata" }, JSON.stringify(current.metadata, null, 2))
    : null;
  return el("section", {}, el("h2", {}, "About it"), facts([
    ["Id", el("code", {}, current.id)],
    ["Category", link(`#/memories?category=${encodeURIComponent(current.category)}`, current.category)],
    ["Kind", current.kind],
    ["Importance", current.importance],
    ["Learned", time(current.timestamp, { withTime: true })],
    ["Changed", time(current.updated_at, { withTime: true })],
    ["Recalled", current.access_count ? [count(current.access_count, "time"), ", last ", time(current.last_accessed, { withTime: true })] : "never"],
    ["Scratchpad", isInScratchpad ? "yes" : "no"],
    ["Tags", current.tags.length ? current.tags.map((tag) => [link(`#/memories?tag=${encodeURIComponent(tag)}`, text(tag)), " "]) : null],
    ["Session", link(`#/memories?session_id=${encodeURIComponent(current.created_by_session)}`, text(current.created_by_session))],
    ["User", current.user_id && link(`#/memories?user_id=${encodeURIComponent(current.user_id)}`, text(current.user_id))],
    ["Run", current.run_id && text(current.run_id)],
    ["Task", current.task_metadata && current.task_metadata.status],
    ["Metadata", metadata],
  ]));
}

function buttons(found, { overview, refresh }) {
  const { id, archived } = found.memory;
  const gone = (result) => { if (result) location.hash = "#/memories"; };
  return el("div", { class: "buttons", role: "group", "aria-label": "What to do with it" },
    button("Edit", () => edit(found.memory, { overview, refresh })),
    archived
      ? button("Unarchive", () => act("Unarchived: searches find it again.", () => post("unarchive", { id }), refresh))
      : button("Archive", () => act("Archived: searches leave it out.", () => post("archive", { id }), refresh)),
    found.is_in_scratchpad
      ? button("Remove from the scratchpad", () => act("It is no longer in the scratchpad.", () => post("demote", { id }), refresh))
      : button("Add to the scratchpad", () => act("It is in the scratchpad.", () => post("promote", { id }), refresh)),
    button("Forget", () => act("Forgotten.", () => post("forget", { id }), refresh)),
    button("Erase for good…", async () => gone(await erase(id)), { class: "danger" }));
}

async function edit(current, { overview, refresh }) {
  const changed = await ask("Edit", (answer) => {
    const content = el("textarea", { dir: "auto", rows: "8", maxlength: "10000", required: true, value: current.content });
    const categories = [...new Set([...overview.categories, current.category])].map((name) => [name, name]);
    const category = select(categories, current.category);
    const kind = select(KINDS, current.kind);
    const importance = select(IMPORTANCES, current.importance);
    const tags = el("input", { dir: "auto", value: current.tags.join(", ") });
    const submit = (event) => {
      event.preventDefault();
      const values = {
        content: content.value, category: category.value, kind: kind.value, importance: importance.value,
        tags: tags.value.split(",").map((tag) => tag.trim()).filter(Boolean),
      };
      const isChanged = ([name, value]) => JSON.stringify(value) !== JSON.stringify(current[name]);
      answer(Object.fromEntries(Object.entries(values).filter(isChanged)));
    };
    return el("form", { onsubmit: submit },
      field("Text", content), field("Category", category), field("Kind", kind), field("Importance", importance),
      field("Tags", tags, { hint: "Separated by commas" }),
      el("div", { class: "buttons" },
        el("button", { type: "submit", class: "primary" }, "Save"), button("Cancel", () => answer(null))));
  });
  if (!changed || !Object.keys(changed).length) return;
  await act("Saved.", () => post("update", { id: current.id, version: current.version, ...changed }), refresh);
}

const WORDS = { ADD: "Stored", UPDATE: "Changed", DELETE: "Forgotten" };

function changes(history, { readOnly, refresh }) {
  return el("ol", { class: "history" }, history.map((entry, place) => el("li", {},
    el("p", { class: "about" },
      el("strong", {}, WORDS[entry.event] ?? entry.event), time(entry.changed_at, { withTime: true }),
      entry.session_id && text(`session ${entry.session_id}`),
      readOnly || place ? null : button("Undo this change", () => act("Undone.", () => post("undo", { change_id: entry.change_id }), refresh))),
    entry.event === "ADD" && history.length === 1 ? null : differences(entry))));
}

function differences(entry) {
  const before = entry.old_values ?? {};
  const after = entry.new_values ?? {};
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((name) => entry.event === "UPDATE" || name === "content");
  return el("dl", { class: "facts" }, names.map((name) => el("div", {},
    el("dt", {}, name),
    el("dd", {}, difference(shown(before[name]), shown(after[name]))))));
}

const shown = (value) => (value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value));

/** A word diff of two texts. */
function difference(before, after) {
  const from = before.split(/(\s+)/);
  const to = after.split(/(\s+)/);
  let start = 0;
  while (start < from.length && start < to.length && from[start] === to[start]) start += 1;
  let end = 0;
  while (end < from.length - start && end < to.length - start && from.at(-1 - end) === to.at(-1 - end)) end += 1;
  const removed = from.slice(start, from.length - end).join("");
  const added = to.slice(start, to.length - end).join("");
  return el("span", { dir: "auto", class: "difference" },
    from.slice(0, start).join(""),
    removed ? el("del", {}, removed) : null,
    added ? el("ins", {}, added) : null,
    end ? from.slice(-end).join("") : "");
}

/** Who was given this memory, when, and, if the log keeps texts, for which question. */
function recalled({ event_log: log, searches }, current) {
  const kept = {
    off: ["Who recalled it is not recorded. To record it from now on: ", el("code", {}, "agent-memory configure event_log brief"), ", or ", el("code", {}, "full"), " with the questions."],
    brief: ["Questions are not kept. To keep them from now on: ", el("code", {}, "agent-memory configure event_log full"), "."],
    full: null,
  }[log];
  return el("section", {}, el("h2", {}, "Recalled by"),
    searches.length ? el("ol", { class: "history" }, searches.map((search) => el("li", {},
      el("div", { class: "about" }, time(search.timestamp, { withTime: true }),
        search.session_id && link(`#/memories?session_id=${encodeURIComponent(search.session_id)}`, text(`session ${search.session_id}`)),
        `hit ${search.place}`),
      search.question && el("a", { class: "row", href: `#/memories?q=${encodeURIComponent(search.question)}` }, text(search.question))))) : null,
    searches.length || log === "off" ? null : el("p", {}, "No search in the log returned it", current.access_count ? `: the ${count(current.access_count, "time")} are from before it` : "", "."),
    kept ? el("p", { class: "hint" }, kept) : null);
}

/** The entities in the memory, and what it says about them. */
function inGraph(graph) {
  if (!graph?.entities.length && !graph?.relationships.length) return null;
  return el("section", {}, el("h2", {}, "In the graph"),
    el("p", { class: "about" }, graph.entities.map((entity) => [entityLink(entity.name), " "])),
    graph.relationships.length ? relationships(graph.relationships) : null);
}

function same(others) {
  if (!others.length) return null;
  return el("section", {}, el("h2", {}, "Duplicates"), el("ul", { class: "rows" },
    others.map((other) => el("li", {}, el("a", { class: "row", href: href(other.id) }, text(other.content)), el("p", { class: "about" }, `${other.grade} duplicate`)))));
}

function before(memories, current) {
  if (!memories.length) return null;
  return el("section", {}, el("h2", {}, "Earlier in its session"), rows(memories),
    el("p", {}, link(`#/memories?session_id=${encodeURIComponent(current.created_by_session)}`, "The whole session")));
}
