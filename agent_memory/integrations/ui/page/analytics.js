// How the memory grows and is used, its gaps, and what to review.

import { act } from "./actions.js";
import { get, post } from "./api.js";
import { button, count, el, empty, facts, field, link, number, select, text, time } from "./dom.js";
import { href } from "./rows.js";
import { bar } from "./why.js";

const SPANS = [["", "all time"], ["7", "7 days"], ["30", "30 days"], ["365", "a year"]];
const DAY = 86_400_000;

export async function analytics({ fields, overview, refresh }) {
  const since = fields.days ? new Date(Date.now() - fields.days * DAY).toISOString() : "";
  const figures = await get("statistics", { since });
  const choose = select(SPANS, fields.days ?? "", { onchange: (event) => { location.hash = `#/analytics?days=${event.target.value}`; } });
  if (!figures.memory_count && !figures.archived_count) return empty("There is nothing to count yet.", "Store some memories first.");
  return [
    field("Time", choose),
    facts([
      ["Memories", `${number(figures.memory_count)}, and ${number(figures.archived_count)} archived`],
      ["Never recalled", figures.never_recalled_count],
      ["Duplicates", figures.duplicate_count ? link("#/duplicates", number(figures.duplicate_count)) : "none"],
      ["Under review", figures.contradiction_count ? link("#/reviews", number(figures.contradiction_count)) : "none"],
    ]),
    recommended(figures.recommendations, { overview, refresh }),
    bars(`Memories by ${figures.period_unit}`, figures.periods.map((name, place) => [name, total(figures.categories, place)])),
    breakdown("By category", figures.categories),
    breakdown("By source", figures.sources),
    breakdown("By session", figures.sessions),
    bars(`Searches by ${figures.period_unit}`, figures.periods.map((name, place) => [name, figures.recalls.searches[place]]), figures.recalls.event_log === "off" ? "They are counted where events are written: agent-memory configure event_log brief" : null),
    gaps(figures),
    often(figures),
  ];
}

const total = (breakdown, place) =>
  breakdown.series.reduce((sum, series) => sum + series.counts[place], breakdown.others[place] ?? 0);

function breakdown(title, values) {
  const rows = values.series.map((series) => [series.name ?? "(none)", series.count]);
  const rest = values.value_count - values.series.length;
  return bars(title, rows, rest > 0 ? `and ${number(rest)} more` : null);
}

/** A table of numbers, each with a bar: it can be printed, and read without colours. */
function bars(title, rows, note = null) {
  const some = rows.filter(([, value]) => value);
  if (!some.length && !note) return null;
  const most = Math.max(...some.map(([, value]) => value), 1);
  return el("section", {}, el("h2", {}, title),
    some.length ? el("table", { class: "bars" }, el("tbody", {}, some.map(([name, value]) => el("tr", {},
      el("th", { scope: "row" }, text(name)), el("td", { class: "bar" }, bar((100 * value) / most)), el("td", { class: "figure" }, number(value)))))) : null,
    note ? el("p", { class: "hint" }, note) : null);
}

function recommended(recommendations, { overview, refresh }) {
  if (!recommendations.length) return null;
  return el("section", {}, el("h2", {}, "Recommended"), el("ul", { class: "rows" }, recommendations.map((each) => {
    const ids = each.same_as ? [each.same_as, ...each.memory_ids] : each.memory_ids;
    return el("li", {},
      el("p", {}, el("span", { class: "badge" }, each.action), " ", each.reason),
      el("p", { class: "about" }, ids.slice(0, 8).map((id) => link(href(id), id))),
      overview.read_only ? el("code", {}, each.command) : steps(each, refresh));
  })));
}

/** The actions for a recommendation; each is one step, and can be undone as one. */
function steps(each, refresh) {
  const ids = each.memory_ids;
  const step = (label, done, name, body) =>
    button(label, () => act(done, () => post(name, body), refresh), { "aria-label": `${label}: ${ids.slice(0, 3).join(", ")}` });
  const archive = step("Archive", `Archived ${count(ids.length, "memory", "memories")}.`, "archive", { ids });
  if (each.review_id !== null) {
    return el("div", { class: "buttons" },
      step("Forget it", "Forgotten.", "approve", { review_id: each.review_id }),
      step("Keep it", "Kept.", "dismiss", { review_id: each.review_id }));
  }
  if (each.same_as !== null) {
    const merge = step("Merge", `Kept one, and forgot ${ids.length}.`, "merge", { keep: each.same_as, others: ids });
    return el("div", { class: "buttons" }, merge, archive);
  }
  return el("div", { class: "buttons" }, each.action === "review" ? link(href(ids[0]), "Look at it") : null, archive);
}

function gaps(figures) {
  if (!figures.gaps.length) return null;
  return el("section", {}, el("h2", {}, "Unanswered questions"), el("ul", { class: "rows" }, figures.gaps.map((gap) => el("li", {},
    el("a", { class: "row", href: `#/memories?q=${encodeURIComponent(gap.question)}` }, text(gap.question)),
    el("p", { class: "about" }, `asked ${count(gap.asked, "time")}, last `, time(gap.last_asked))))));
}

function often(figures) {
  if (!figures.most_recalled.length) return null;
  return el("section", {}, el("h2", {}, "Most recalled"), el("ul", {}, figures.most_recalled.map((each) => el("li", {},
    link(href(each.memory_id), each.memory_id), ` ${count(each.access_count, "time")}`, each.is_too_often ? ": in over half of all searches" : ""))));
}
