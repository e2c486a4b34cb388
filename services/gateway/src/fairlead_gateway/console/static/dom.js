// Builds elements. Text is always text: nothing here parses HTML.

/** An element: `h("div.card", {title: "x", onclick: f}, child, "text")`. */
export function h(spec, attributes, ...children) {
  const [tag, ...classes] = spec.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  if (attributes && (typeof attributes !== "object" || attributes instanceof Node || Array.isArray(attributes))) {
    children.unshift(attributes);
  } else if (attributes) {
    setAll(element, attributes);
  }
  append(element, children);
  return element;
}

function setAll(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = `${element.className} ${value}`.trim();
    else if (name === "value" || name === "checked" || name === "disabled" || name === "open") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

function append(element, children) {
  for (const child of children) {
    if (child === undefined || child === null || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child);
  }
}

/** Replace what an element contains. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Hide or show an element. */
export function show(element, shown) {
  if (element.hidden === Boolean(shown)) element.hidden = !shown;
}

let nextId = 0;

/** An id for a label and its field. */
export function uniqueId() {
  nextId += 1;
  return `fl${nextId}`;
}

const SVG = "http://www.w3.org/2000/svg";

// Our own icons on a grid of 16, drawn with strokes.
const PATHS = {
  sessions: "M2.5 4h11M2.5 8h11M2.5 12h7",
  inbox: "M2.5 9.5 4 3h8l1.5 6.5v3.5h-11zM2.5 9.5h3.5l1 1.5h2l1-1.5h3.5",
  ops: "M8 2v3M8 11v3M2 8h3M11 8h3M8 5a3 3 0 1 0 0 6a3 3 0 1 0 0-6",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9M10.5 10.5 14 14",
  plus: "M8 3v10M3 8h10",
  send: "M8 13V3M3.5 7.5 8 3l4.5 4.5",
  stop: "M4 4h8v8H4z",
  play: "M5 3.5v9l7-4.5z",
  check: "m3 8.5 3.5 3.5L13 4.5",
  cross: "M4 4l8 8M12 4l-8 8",
  chevron: "m6 3.5 4.5 4.5L6 12.5",
  down: "M8 3v10M3.5 8.5 8 13l4.5-4.5",
  copy: "M6 6h7v7H6zM3 10V3h7",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5",
  more: "M3.5 7.3v1.4M8 7.3v1.4M12.5 7.3v1.4",
  back: "M10 3 5 8l5 5",
  fold: "M8 1.5v4M5.5 3.5 8 6l2.5-2.5M8 14.5v-4M5.5 12.5 8 10l2.5 2.5M2.5 8h11",
  tool: "M10 2.5a3.5 3.5 0 0 0-3.2 4.9L2.5 11.7l1.8 1.8 4.3-4.3A3.5 3.5 0 0 0 13.3 5L11 7 9 5l2-2.3a3.5 3.5 0 0 0-1-.2",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
  bolt: "M9 1.5 3.5 9H8l-1 5.5L12.5 7H8z",
  warning: "M8 2 1.5 13.5h13zM8 6.5v3.5M8 12h.01",
  side: "M2.5 3h11v10h-11zM10 3v10",
  edit: "M3 13l.7-3L10.5 3.2l2.3 2.3L6 12.3z",
  branch: "M4.5 2v12M4.5 8c5 0 7-1 7-4",
  key: "M10.5 2.5a3 3 0 1 0 0 6a3 3 0 1 0 0-6M8.3 7.7 3 13M4.5 11.5 6 13",
  user: "M8 2.5a2.5 2.5 0 1 0 0 5a2.5 2.5 0 1 0 0-5M3 13.5c.5-3 2.5-4 5-4s4.5 1 5 4",
};

/** One of our icons. It says nothing to screen readers: the button around it has the words. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

/** A button with an icon, a name for screen readers, and perhaps visible words. */
export function button(words, attributes, iconName) {
  const { quiet, ...rest } = attributes ?? {};
  return h(`button${quiet ? ".quiet" : ""}`, { type: "button", title: quiet ? words : undefined, "aria-label": quiet ? words : undefined, ...rest },
    iconName && icon(iconName), quiet ? null : h("span", words));
}

/** Whether the person types into a field now. */
export function isTyping() {
  const active = /** @type {HTMLElement} */ (document.activeElement);
  return Boolean(active && (active.matches("input, textarea, select") || active.isContentEditable));
}

let liveRegion;

/** Say something to screen readers. */
export function announce(text) {
  liveRegion ??= document.getElementById("announcer");
  if (liveRegion) liveRegion.textContent = text;
}
