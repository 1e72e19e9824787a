// The entities in the memories, and their relationships, now or at a time.

import { get } from "./api.js";
import { el, empty, field, link, svg, text, time } from "./dom.js";
import { paged } from "./paged.js";
import { href } from "./rows.js";

const SIZE = 420;
const RADIUS = 150;
const LONGEST = 16;
const MOST_DRAWN = 24;
const MOST_ROWS = 100;

export async function graph({ fields }) {
  return fields.name ? around(fields) : all();
}

const address = (name, asOf = "") => `#/graph?${new URLSearchParams({ name, ...(asOf && { as_of: asOf }) })}`;

async function all() {
  const load = async (after) => {
    const { entities, has_more: hasMore } = await get("entities", { after });
    return { rows: entities, hasMore };
  };
  const page = await load(null);
  if (!page.rows.length) {
    return empty("The graph is empty.", "It is built from conversations: ", el("code", {}, "agent-memory add --graph"), ", or by hand: ", el("code", {}, "agent-memory graph add"), ".");
  }
  return paged(el("ul", { class: "rows" }), page, { item: entityRow, next: (last) => load(last.id) });
}

const entityRow = (entity) => el("li", {},
  el("a", { class: "row", href: address(entity.name) }, text(entity.name)),
  el("p", { class: "about" }, entity.type && el("span", { class: "badge" }, entity.type),
    entity.user_id && text(`user ${entity.user_id}`),
    entity.aliases?.length ? text(`also ${entity.aliases.join(", ")}`) : null));

async function around(fields) {
  const near = await get("entity", fields);
  const moment = el("input", { type: "datetime-local", required: true });
  const form = el("form", {
    class: "inline",
    onsubmit: (event) => {
      event.preventDefault();
      location.hash = address(near.name, new Date(moment.value).toISOString());
    },
  }, field("As it was at", moment), el("button", { type: "submit" }, "Show"),
  fields.as_of ? link(address(near.name), "As it is now") : null);
  return [
    el("h2", {}, text(near.name), fields.as_of ? [" at ", time(fields.as_of, { withTime: true })] : null),
    form,
    near.truncated ? el("p", { class: "warning" }, "There is more around it: this is the nearest.") : null,
    near.edges.length ? [drawing(near), relationships(near.edges, fields.as_of)] : el("p", {}, "It had no relationships then."),
    el("p", {}, link("#/graph", "All entities")),
  ];
}

/** A picture of the table. */
function drawing(near) {
  const middle = SIZE / 2;
  const places = new Map([[near.name, [middle, middle]]]);
  const all = [...new Set(near.edges.flatMap((edge) => [edge.source, edge.target]))].filter((name) => name !== near.name);
  const others = all.slice(0, MOST_DRAWN);
  others.forEach((name, place) => {
    const angle = (2 * Math.PI * place) / others.length - Math.PI / 2;
    places.set(name, [middle + RADIUS * Math.cos(angle), middle + RADIUS * Math.sin(angle)]);
  });
  const lines = near.edges.filter((edge) => places.has(edge.source) && places.has(edge.target)).map((edge) => {
    const [[x1, y1], [x2, y2]] = [places.get(edge.source), places.get(edge.target)];
    return svg("line", { x1, y1, x2, y2, class: edge.valid_to ? "closed" : null });
  });
  const nodes = [...places].map(([name, [cx, cy]]) => svg("g", {},
    svg("circle", { cx, cy, r: name === near.name ? 9 : 6 }),
    svg("text", { x: cx, y: cy > middle - 1 ? cy + 24 : cy - 12, "text-anchor": "middle" }, name.length > LONGEST ? `${name.slice(0, LONGEST)}…` : name)));
  return svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, class: "graph", role: "img", "aria-label": `${near.name} and ${others.length} around it; the table has ${all.length === others.length ? "the same" : "all"}` }, lines, nodes);
}

/** Relationships as a table, with their memories; a long table continues on request. */
export function relationships(edges, asOf = null) {
  const to = (name) => el("a", { href: address(name, asOf) }, text(name));
  const item = (edge) => el("tr", {},
    el("td", {}, to(edge.source)), el("td", {}, text(edge.relationship)), el("td", {}, to(edge.target)),
    el("td", {}, time(edge.valid_from)), el("td", {}, edge.valid_to ? time(edge.valid_to) : "now"),
    el("td", {}, (edge.source_memory_ids ?? []).map((id) => [link(href(id), id), " "])));
  const slice = (start) => ({ rows: edges.slice(start, start + MOST_ROWS), hasMore: edges.length > start + MOST_ROWS });
  const [body, ...more] = paged(el("tbody"), slice(0), { item, next: async (last) => slice(edges.indexOf(last) + 1) });
  return [
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Relationships" }, el("table", {},
      el("thead", {}, el("tr", {}, ["From", "relationship", "to", "since", "until", "stated by"].map((name) => el("th", { scope: "col" }, name)))), body)),
    more,
  ];
}

/** A link to the surroundings of an entity. */
export const entityLink = (name) => link(address(name), text(name));
