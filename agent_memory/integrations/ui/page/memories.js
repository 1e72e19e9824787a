// The list of memories, newest first, and search results.

import { get } from "./api.js";
import { count, el, empty, field, link, select, time } from "./dom.js";
import { paged } from "./paged.js";
import { row } from "./rows.js";
import { why } from "./why.js";

const KINDS = [["", "any kind"], ["core", "core"], ["learning", "learning"], ["task", "task"]];
const IMPORTANCES = [["", "any importance"], ["high", "high"], ["medium", "medium"], ["low", "low"]];
const ARCHIVED = [["", "not archived"], ["1", "archived"], ["both", "both"]];
const ORDERS = [
  ["", "best first, or newest"], ["newest", "newest first"], ["oldest", "oldest first"], ["importance", "most important first"],
  ["recalled", "most recalled first"], ["last_recalled", "last recalled first"], ["category", "by category"],
];
const RANKS = { high: 0, medium: 1, low: 2 };
const newestFirst = (a, b) => b.timestamp.localeCompare(a.timestamp);
/** The orders of a list, for the hits of a search. */
const COMPARED = {
  newest: newestFirst,
  oldest: (a, b) => newestFirst(b, a),
  importance: (a, b) => RANKS[a.importance] - RANKS[b.importance] || newestFirst(a, b),
  recalled: (a, b) => b.access_count - a.access_count || newestFirst(a, b),
  last_recalled: (a, b) => (b.last_accessed ?? "").localeCompare(a.last_accessed ?? "") || newestFirst(a, b),
  category: (a, b) => a.category.localeCompare(b.category) || newestFirst(a, b),
};

export async function memories({ fields, overview }) {
  const answer = fields.q ? await found(fields) : await newest(fields, overview);
  const past = fields.as_of && el("p", { class: "warning" }, "As it was at ", time(fields.as_of, { withTime: true }), ". ", link("#/memories", "As it is now"));
  return [form(fields, overview), past, answer];
}

function form(fields, overview) {
  const search = el("input", { type: "search", id: "search", name: "q", value: fields.q ?? "", dir: "auto", placeholder: "Ask in plain words", "aria-label": "Search the memories", "aria-keyshortcuts": "/" });
  const categories = [["", "any category"], ...overview.categories.map((name) => [name, name])];
  const chosen = Object.keys(fields).some((name) => name !== "q" && fields[name]);
  const filters = el("details", { class: "filters", open: chosen },
    el("summary", {}, "Filters"),
    el("div", { class: "grid" },
      field("Category", select(categories, fields.category ?? "", { name: "category" })),
      field("Kind", select(KINDS, fields.kind ?? "", { name: "kind" })),
      field("Importance", select(IMPORTANCES, fields.importance ?? "", { name: "importance" })),
      field("Archive", select(ARCHIVED, fields.archived ?? "", { name: "archived" })),
      field("Tag", el("input", { name: "tag", value: fields.tag ?? "", dir: "auto" })),
      field("User", el("input", { name: "user_id", value: fields.user_id ?? "" })),
      field("Session", el("input", { name: "session_id", value: fields.session_id ?? "" })),
      field("From", el("input", { type: "date", name: "since", value: fields.since ?? "" })),
      field("Until", el("input", { type: "date", name: "until", value: fields.until ?? "" })),
      field("Order", select(ORDERS, fields.order ?? "", { name: "order" }))),
    el("div", { class: "buttons" }, el("button", { type: "submit" }, "Apply"), link("#/memories", "Clear all")));
  const submit = (event) => {
    event.preventDefault();
    const values = [...new FormData(event.target)].filter(([, value]) => value.trim() !== "");
    const address = `#/memories?${new URLSearchParams(values)}`;
    if (location.hash === address) dispatchEvent(new HashChangeEvent("hashchange"));
    else location.hash = address;
  };
  return el("form", { role: "search", onsubmit: submit },
    fields.as_of ? el("input", { type: "hidden", name: "as_of", value: fields.as_of }) : null,
    el("div", { class: "searchbar" }, search, el("button", { type: "submit", class: "primary" }, "Search")),
    filters);
}

async function newest(fields, known) {
  // Changes made meanwhile, here or by an agent, change the counts too.
  const [page, overview] = await Promise.all([get("memories", fields), known.refreshed()]);
  if (!page.memories.length) return nothing(fields, overview);
  const { order, ...filters } = fields;
  const isWhole = !Object.values(filters).some(Boolean);
  const total = isWhole ? count(overview.memory_count, "memory", "memories") : "Those that match the filters";
  const sorting = ORDERS.find(([name]) => name && name === order)?.[1] ?? "newest first";
  const asPage = (answer) => ({ rows: answer.memories, hasMore: answer.has_more });
  return [
    el("p", { class: "status" }, total, overview.archived_count && isWhole ? `, and ${overview.archived_count} archived` : "", `, ${sorting}`),
    paged(el("ul", { class: "rows" }), asPage(page), {
      item: (each) => row(each),
      next: async (last) => asPage(await get("memories", { ...fields, after: last.id })),
    }),
  ];
}

async function found(fields) {
  const answer = await get("search", { limit: 50, ...fields, order: "" });
  const { hits, search } = answer;
  const explanation = search.explanation && el("p", { class: "explanation" }, search.explanation);
  if (!hits.length) {
    return [
      empty("Nothing found.", search.explanation ?? "Try other words, fewer filters, or ",
        " ", link("#/memories", "see all memories"), "."),
      nearMisses(search.near_misses),
    ];
  }
  const ordered = [...hits];
  const compare = COMPARED[fields.order];
  if (compare) ordered.sort((a, b) => compare(a.memory, b.memory));
  const good = hits.filter((hit) => hit.passed_gate).length;
  return [
    el("p", { class: "status", role: "status" }, `${count(good, "good answer")}, ${count(hits.length - good, "weaker one")}, in ${Math.max(1, Math.round(search.processing_time_ms))} ms`),
    search.degraded.map((note) => el("p", { class: "warning" }, note)),
    explanation,
    el("ol", { class: "rows" }, ordered.map((hit) => row(hit.memory, { more: [strength(hit), why(hit.score)] }))),
    nearMisses(search.near_misses),
  ];
}

function strength(hit) {
  const share = Math.round(hit.similarity * 100);
  return el("p", { class: "strength" },
    el("meter", { min: 0, max: 100, value: share, "aria-label": "Similarity" }),
    ` ${share} % similar · ${hit.match_type}${hit.passed_gate ? "" : " · below the gate"}`);
}

function nearMisses(misses) {
  if (!misses.length) return null;
  return el("section", { class: "misses" }, el("h2", {}, "Near misses"),
    el("ul", { class: "rows" }, misses.map((miss) => el("li", {},
      el("a", { class: "row", href: `#/memory/${encodeURIComponent(miss.memory_id)}` }, el("span", { dir: "auto" }, miss.content)),
      el("p", { class: "about" }, `${Math.round(miss.similarity * 100)} % similar: ${miss.reason}`), why(miss.score)))));
}

function nothing(fields, overview) {
  if (Object.values(fields).some(Boolean)) {
    return empty("No memory matches these filters.", "Remove one, or ", link("#/memories", "clear all"), ".");
  }
  return empty("There are no memories yet.", overview.suggestion ?? "",
    " Store the first one: ", el("code", {}, `agent-memory --agent ${overview.agent_id} store "…"`));
}
