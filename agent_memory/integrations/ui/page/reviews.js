// What waits for a decision: memories under review, duplicates, rejected texts.

import { act } from "./actions.js";
import { get, post } from "./api.js";
import { button, count, el, empty, field, link, text, time } from "./dom.js";
import { href } from "./rows.js";

export async function reviews({ overview, refresh }) {
  const { reviews: waiting } = await get("reviews");
  if (!waiting.length) {
    return empty("Nothing is under review.", "When a conversation seems to contradict a memory, but not for certain, you are asked here.");
  }
  return el("ul", { class: "rows" }, waiting.map((review) => {
    const settle = (name, done) => () => act(done, () => post(name, { review_id: review.review_id }), refresh);
    return el("li", {},
      el("p", { class: "label" }, "Under review"),
      el("a", { class: "row", href: href(review.memory_id) }, text(review.content)),
      review.replacement ? [el("p", { class: "label" }, "Contradicted by"), el("a", { class: "row", href: href(review.replaced_by) }, text(review.replacement))] : null,
      review.remaining ? [el("p", { class: "label" }, "If that is right, this is left"), text(review.remaining)] : null,
      review.reasoning ? el("p", { dir: "auto" }, review.reasoning) : null,
      el("div", { class: "about" }, time(review.proposed_at), review.confidence !== null ? `${Math.round(review.confidence * 100)} % sure` : null),
      overview.read_only ? null : el("div", { class: "buttons" },
        review.remaining === null ? null : button(review.remaining ? "Shorten it" : "Forget it", settle("approve", review.remaining ? "Shortened." : "Forgotten.")),
        button("Keep it", settle("dismiss", "Kept."))));
  }));
}

export async function duplicates({ overview, refresh }) {
  const { groups, has_more: hasMore } = await get("duplicates");
  if (!groups.length) {
    return empty("No two memories say the same.", "Duplicates are listed here, and you choose which one to keep.");
  }
  return [
    el("p", { class: "status" }, `${hasMore ? "The first " : ""}${count(groups.length, "group")}, the oldest first. The one that is kept gets the tags of all.`),
    groups.map((group) => el("section", { class: "group" },
      el("h2", {}, `${count(group.count, "memory", "memories")}, ${group.grade}`),
      el("ul", { class: "rows" }, group.memories.map((memory) => {
        const others = group.memories.filter((other) => other.id !== memory.id).map((other) => other.id);
        return el("li", {},
          el("a", { class: "row", href: href(memory.id) }, text(memory.content, { class: "content" })),
          el("div", { class: "about" }, el("span", { class: "badge" }, memory.category), time(memory.timestamp), memory.tags.map((tag) => text(`#${tag}`)),
            overview.read_only ? null : button("Keep this one", () => act(`Kept one, and forgot ${others.length}.`, () => post("merge", { keep: memory.id, others }), refresh), { "aria-label": `Keep this one: ${memory.content.slice(0, 60)}` })));
      })))),
  ];
}

export async function rejections({ overview, refresh }) {
  const { rejections: rejected } = await get("rejections");
  const input = el("input", { dir: "auto", required: true, autocomplete: "off" });
  const reason = el("input", { dir: "auto" });
  const submit = (event) => {
    event.preventDefault();
    act("Rejected.", () => post("reject", { text: input.value, reason: reason.value }), async (result) => {
      await refresh();
      if (result.holders?.length) holders(result.holders);
    });
  };
  const form = el("form", { onsubmit: submit },
    field("Store no memory that contains this text", input, { hint: "Only a hash of its words is kept. Memories that already contain it stay, and are shown." }),
    field("Reason (optional)", reason),
    el("button", { type: "submit" }, "Reject"));
  const list = rejected.length
    ? el("ul", { class: "rows" }, rejected.map((each) => el("li", {},
      el("p", {}, `Number ${each.rejection_id}: ${count(each.word_count, "word")}`, each.reason ? [", ", text(each.reason)] : null),
      el("div", { class: "about" }, time(each.rejected_at, { withTime: true }),
        overview.read_only ? null : button("Allow it again", () => act("It may be stored again.", () => post("lift", { rejection_id: each.rejection_id }), refresh), { "aria-label": `Allow it again: number ${each.rejection_id}` })))))
    : empty("Nothing is rejected.", "A wrong value that comes back again and again can be kept out for good.");
  return [overview.read_only ? null : form, list];
}

function holders(ids) {
  document.getElementById("main").append(el("section", {}, el("h2", {}, "These already contain it"),
    el("ul", {}, ids.map((id) => el("li", {}, link(href(id), id))))));
}
