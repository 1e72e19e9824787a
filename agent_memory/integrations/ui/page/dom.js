// Builds elements from data, never from HTML: a text always stays a text.

const PROPERTIES = new Set(["value", "checked", "disabled", "open", "hidden", "htmlFor", "tabIndex"]);

/** Make an element. `on…` attributes are listeners, null ones are left out, strings are texts. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Make an element of SVG. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (PROPERTIES.has(name)) node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(9).filter((child) => child !== null && child !== undefined));
  return node;
}

/** A user's text, in its own direction. */
export const text = (content, attributes = {}) => el("span", { dir: "auto", ...attributes }, content);

const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const NUMBER = new Intl.NumberFormat();

/** A readable time; the exact one is its title. */
export function time(moment, { withTime = false } = {}) {
  if (!moment) return el("span", {}, "–");
  const when = new Date(moment);
  const shown = (withTime ? MOMENT : DATE).format(when);
  return el("time", { datetime: moment, title: moment }, shown);
}

export const number = (value) => NUMBER.format(value);

export const count = (value, singular, plural = `${singular}s`) =>
  `${number(value)} ${value === 1 ? singular : plural}`;

/** A link to a view. */
export const link = (href, ...children) => el("a", { href }, ...children);

export const button = (label, onclick, attributes = {}) =>
  el("button", { type: "button", onclick, ...attributes }, label);

/** A field with its label. */
export function field(label, input, { hint = null } = {}) {
  const id = `field-${(field.last = (field.last ?? 0) + 1)}`;
  input.id = id;
  const note = hint && el("p", { class: "hint", id: `${id}-hint` }, hint);
  if (note) input.setAttribute("aria-describedby", note.id);
  return el("div", { class: "field" }, el("label", { htmlFor: id }, label), input, note);
}

export const select = (options, chosen, attributes = {}) =>
  el("select", attributes, options.map(([value, label]) =>
    el("option", { value, selected: value === chosen }, label)));

/** What a view shows if it is empty: that, and what to do about it. */
export const empty = (message, ...advice) =>
  el("div", { class: "empty" }, el("p", { class: "empty-title" }, message), el("p", {}, ...advice));

/** A line of small facts, each by itself: two texts side by side would be one. */
export const about = (...items) =>
  el("div", { class: "about" }, items.flat().filter((item) => item !== null && item !== undefined && item !== false && item !== "")
    .map((item) => (typeof item === "string" ? el("span", {}, item) : item)));

/** A list of names and what they stand for. */
export const facts = (pairs) =>
  el("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
