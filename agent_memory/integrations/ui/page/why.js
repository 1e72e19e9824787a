// Why a memory was found: the parts of its score as bars, and the gate that it had to pass.

import { el, facts, svg } from "./dom.js";

const PARTS = {
  keyword: "its words", keyword_neighbours: "words around it", keyword_session: "words of its session",
  vector: "its meaning", vector_neighbours: "meaning around it", vector_session: "meaning of its session",
  subject: "begins with what was asked", date: "its date", question: "is a question itself",
};
const BAR_UNITS = 100;

/** The parts of a score, for a hit or a near miss. */
export function why(score) {
  if (!score) return null;
  const parts = Object.entries(PARTS).filter(([name]) => Math.abs(score[name]) >= 0.005);
  const widest = Math.max(score.evidence, ...parts.map(([name]) => Math.abs(score[name])), 0.01);
  return el("details", { class: "why" }, el("summary", {}, "Why?"),
    el("table", {},
      el("caption", {}, "Why it was found"),
      el("tbody", {}, parts.map(([name, label]) => line(label, score[name], widest)),
        line("together", score.evidence, widest))),
    facts([
      ["Beside the best hit", `${shown(score.relative)}, and the gate is at ${shown(score.gate)}: ${score.relative >= score.gate ? "passed" : "below"}`],
      ["Share of the question that was found", shown(score.strength)],
      ["Freshness", `× ${shown(score.freshness)}`],
      ["For its accesses", `× ${shown(score.access_boost)}`],
      ["Cosine", score.cosine === null ? null : shown(score.cosine)],
      ["Place", score.has_kept_place ? "kept for its meaning alone" : null],
      ["Words that stand for others", Object.entries(score.variants).map(([asked, there]) => `${asked}: ${there}`).join(", ")],
    ]));
}

const shown = (value) => value.toFixed(2);

function line(label, value, widest) {
  const width = (Math.abs(value) / widest) * BAR_UNITS;
  return el("tr", {}, el("th", { scope: "row" }, label),
    el("td", { class: "bar" }, bar(width, value < 0)),
    el("td", { class: "figure" }, shown(value)));
}

/** A bar of 0 to 100; the number beside it says the same. */
export const bar = (width, isNegative = false) =>
  svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true", class: isNegative ? "negative" : null },
    svg("rect", { x: 0, y: 0, width, height: 10 }));
