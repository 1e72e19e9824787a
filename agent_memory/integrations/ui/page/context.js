// What the agent is given: the scratchpad, and the text that a model reads of it.

import { act } from "./actions.js";
import { get, post } from "./api.js";
import { button, count, el, empty, field, number, text, time } from "./dom.js";
import { href } from "./rows.js";

export async function context({ fields, overview, refresh }) {
  const given = await get("context", { budget: fields.budget });
  if (!given.scratchpad.length) {
    return empty("The scratchpad is empty.", "A memory is added when it is recalled often, or when you add it: open one, and choose “Add to the scratchpad”.");
  }
  const budget = el("input", { type: "number", name: "budget", min: 0, max: 100000, value: given.budget });
  const submit = (event) => {
    event.preventDefault();
    location.hash = `#/context?budget=${encodeURIComponent(budget.value)}`;
  };
  const share = given.budget ? given.tokens / given.budget : 0;
  return [
    el("section", {}, el("h2", {}, "As the model sees it"),
      el("form", { onsubmit: submit, class: "inline" }, field("Maximum tokens", budget), el("button", { type: "submit" }, "Show")),
      el("p", { class: "status" }, el("meter", { min: 0, max: 1, value: share, "aria-label": "Share of the budget" }), ` about ${number(given.tokens)} of ${number(given.budget)} tokens`),
      given.text
        ? el("pre", { dir: "auto", tabindex: "0", role: "group", "aria-label": "Context" }, given.text)
        : el("p", {}, "Nothing fits into so few tokens.")),
    el("section", {}, el("h2", {}, "Scratchpad"),
      el("p", { class: "status" }, `${count(given.scratchpad.length, "memory", "memories")} of ${given.max_size} at most`),
      el("ul", { class: "rows" }, given.scratchpad.map((entry) => el("li", {},
        el("a", { class: "row", href: href(entry.id) }, text(entry.content, { class: "content" })),
        el("div", { class: "about" }, el("span", { class: "badge" }, entry.category), time(entry.timestamp), `recalled ${number(entry.access_count)}×`,
          overview.read_only ? null : button("Remove", () => act("It is no longer in the scratchpad.", () => post("demote", { id: entry.id }), refresh), { "aria-label": `Remove: ${entry.content.slice(0, 60)}` })))))),
  ];
}
