// Memories as rows of a list, the same in every view.

import { el, link, number, text, time } from "./dom.js";

export const href = (memoryId) => `#/memory/${encodeURIComponent(memoryId)}`;

/** A memory as a row; `more` is shown below its text. */
export function row(memory, { more = null } = {}) {
  return el("li", { class: memory.archived ? "archived" : null },
    el("a", { class: "row", href: href(memory.id) },
      text(memory.content + (memory.is_cut ? " …" : ""), { class: "content" })),
    el("div", { class: "about" },
      el("span", { class: "badge" }, memory.category),
      memory.importance === "high" ? el("span", { class: "badge strong" }, "important") : null,
      memory.archived ? el("span", { class: "badge" }, "archived") : null,
      time(memory.timestamp),
      memory.access_count ? el("span", {}, `recalled ${number(memory.access_count)}×`) : null,
      memory.tags.map((tag) => link(`#/memories?tag=${encodeURIComponent(tag)}`, text(`#${tag}`)))),
    more);
}

export const rows = (memories) => el("ul", { class: "rows" }, memories.map((each) => row(each)));
