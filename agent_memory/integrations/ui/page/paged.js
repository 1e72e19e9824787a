// Lists paged by key: memories stored meanwhile neither repeat a row nor hide one.

import { button, el, number } from "./dom.js";

/** Return a list with a button that continues it: `next(last)` gives `{ rows, hasMore }`. */
export function paged(list, page, { next, item }) {
  const status = el("p", { class: "status", role: "status" });
  let last = page.rows.at(-1);
  list.append(...page.rows.map(item));
  const more = async (event) => {
    event.target.disabled = true;
    try {
      const { rows, hasMore } = await next(last);
      last = rows.at(-1) ?? last;
      const added = rows.map(item);
      list.append(...added);
      status.textContent = `${number(list.children.length)} shown`;
      added[0]?.querySelector("a, button")?.focus();
      event.target.hidden = !hasMore;
    } catch (error) {
      status.textContent = `${error.message} Reload the page.`;
    }
    event.target.disabled = false;
  };
  return [list, page.hasMore ? button("Show more", more) : null, status];
}
