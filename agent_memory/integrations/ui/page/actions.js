// Actions: each reports what it did, in the live region, and offers to undo it.

import { post } from "./api.js";
import { button, count, el, facts, field, link } from "./dom.js";

const NOTICE_MILLISECONDS = 12_000;
let timer = 0;

/** The request that undoes a change or reopens a dismissed review; null if nothing can. */
function undoOf(change) {
  if (change?.change_id) return { change_id: change.change_id, whole: change.whole };
  return change?.review_id ? { review_id: change.review_id } : null;
}

/** Report what was done, and offer to undo it. The message stays while it has the focus. */
export function notify(message, { change = null, isError = false, onundo = null } = {}) {
  const place = document.getElementById("notice");
  clearTimeout(timer);
  const close = () => place.replaceChildren();
  const hide = () => {
    if (place.contains(document.activeElement)) timer = setTimeout(hide, NOTICE_MILLISECONDS);
    else close();
  };
  const undoing = async () => {
    await act("Undone.", () => post("undo", undoOf(change)), onundo);
  };
  place.replaceChildren(el("div", { class: isError ? "notice error" : "notice" },
    el("span", { dir: "auto" }, message),
    undoOf(change) && button("Undo", undoing),
    button("×", close, { "aria-label": "Close this message", class: "quiet" })));
  if (!isError) timer = setTimeout(hide, NOTICE_MILLISECONDS);
}

let last = Promise.resolve();

/**
 * Run actions one after another: during an erasure, the view that an earlier action reloads would ask
 * for what is gone, and during a change of agents an undo would go to the other agent.
 */
export function inTurn(work) {
  last = last.then(work);
  return last;
}

/** Run an action in its turn, report that it was done or why not, and reload the view. */
export const act = (...step) => inTurn(() => perform(...step));

async function perform(done, work, after = null) {
  try {
    const result = await work();
    notify(done, { change: result, onundo: after });
    if (after) await after(result);
    return result;
  } catch (error) {
    notify(error.message, { isError: true });
    return null;
  }
}

/** Ask in a dialog; the answer is what `make` gave to `answer`, or null. */
export function ask(title, make) {
  return new Promise((resolve) => {
    const heading = el("h2", { id: "dialog-title" }, title);
    const dialog = el("dialog", { "aria-labelledby": heading.id }, heading);
    let result = null;
    const answer = (value) => { result = value; dialog.close(); };
    dialog.append(...[make(answer)].flat());
    dialog.addEventListener("close", () => { dialog.remove(); resolve(result); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Erase a memory: asked twice, the second time by its id. Returns whether it was erased. */
export async function erase(memoryId) {
  const first = await ask("Erase this memory for good?", (answer) => {
    const backups = el("input", { type: "checkbox" });
    return [
      el("p", {}, "Its text is removed from the file, its history, the indexes and the free pages. This cannot be undone. To hide it in a way that can be undone, forget it instead."),
      el("label", { class: "check" }, backups, " Erase it from the backups too"),
      el("div", { class: "buttons" },
        button("Keep it", () => answer(null), { autofocus: true }),
        button("Continue…", () => answer({ backups: backups.checked }), { class: "danger" })),
    ];
  });
  if (!first) return false;
  const confirm = await ask("Type its id to erase it", (answer) => {
    const input = el("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    const go = button("Erase for good", () => answer(memoryId), { class: "danger", disabled: true });
    input.addEventListener("input", () => { go.disabled = input.value.trim() !== memoryId; });
    return [
      field(`The id is ${memoryId}`, input),
      el("div", { class: "buttons" }, button("Keep it", () => answer(null)), go),
    ];
  });
  if (!confirm) return false;
  const receipt = await act("Erased.", () => post("erase", { id: memoryId, confirm, ...first }));
  if (receipt) await showReceipt(receipt);
  return receipt !== null;
}

function showReceipt(receipt) {
  const inBackups = receipt.backups.filter((copy) => copy.found || copy.problem);
  return ask("Erased: the receipt", (answer) => [
    el("p", {}, receipt.clean
      ? "Nothing of it is left in the memory."
      : "Something of it is left: see below."),
    facts([
      ["Memories removed", receipt.memories],
      ["Changes removed from the history", receipt.changes],
      ["Embeddings removed", receipt.embeddings],
      ["Searched", `${receipt.files_scanned ? count(receipt.files_scanned, "file") : "all rows"}, ${count(receipt.bytes_scanned, "byte")}`],
      ["Erased at", receipt.erased_at],
    ]),
    receipt.found.length ? el("ul", {}, receipt.found.map((place) => el("li", {}, place))) : null,
    receipt.beyond.length
      ? el("p", {}, `The operator of the database may still have it in ${receipt.beyond.join("; ")}.`)
      : null,
    receipt.also_in.length
      ? el("p", {}, "Other memories contain part of it: ", receipt.also_in.map((id) => [link(`#/memory/${encodeURIComponent(id)}`, id), " "]))
      : null,
    inBackups.length
      ? el("p", {}, `${count(inBackups.length, "backup")} still ${inBackups.length === 1 ? "has" : "have"} it: erase it from the backups too, or delete them.`)
      : null,
    el("div", { class: "buttons" }, button("Close", () => answer(true), { autofocus: true })),
  ].filter(Boolean));
}
