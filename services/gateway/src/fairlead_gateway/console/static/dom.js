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
  element.hidden = !shown;
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
  inbox: "M2.5 9.5 4 3h8l1.500 6.500v3.500h-11zM2.500 9.500h3.500l1 1.500h2l1-1.500h3.500",
  ops: "M8 2v3M8 11v3M2 8h3M11 8h3M8 5a3 3 0 1 0 0 6a3 3 0 1 0 0-6",
  search: "M7 2.500a4.500 4.500 0 1 0 0 9a4.500 4.500 0 1 0 0-9M10.500 10.500 14 14",
  plus: "M8 3v10M3 8h10",
  send: "M8 13V3M3.500 7.500 8 3l4.500 4.500",
  stop: "M4 4h8v8H4z",
  play: "M5 3.500v9l7-4.500z",
  check: "m3 8.500 3.500 3.500L13 4.500",
  cross: "M4 4l8 8M12 4l-8 8",
  chevron: "m6 3.500 4.500 4.500L6 12.500",
  down: "M8 3v10M3.500 8.500 8 13l4.500-4.500",
  copy: "M6 6h7v7H6zM3 10V3h7",
  clock: "M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2M8 5v3.500l2.500 1.500",
  moon: "M13 9.500A5.500 5.500 0 0 1 6.500 3a5.500 5.500 0 1 0 6.500 6.500",
  sun: "M8 5.500a2.500 2.500 0 1 0 0 5a2.500 2.500 0 1 0 0-5M8 1.500v1.500M8 13v1.500M1.500 8H3M13 8h1.500M3.500 3.500l1 1M11.500 11.500l1 1M3.500 12.500l1-1M11.500 4.500l1-1",
  more: "M3.500 7.300v1.400M8 7.300v1.400M12.500 7.300v1.400",
  back: "M10 3 5 8l5 5",
  tool: "M10 2.500a3.500 3.500 0 0 0-3.200 4.900L2.500 11.700l1.800 1.800 4.300-4.300A3.500 3.500 0 0 0 13.300 5L11 7 9 5l2-2.300a3.500 3.500 0 0 0-1-.2",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
  bolt: "M9 1.500 3.500 9H8l-1 5.500L12.500 7H8z",
  warning: "M8 2 1.500 13.500h13zM8 6.500v3.500M8 12h.01",
  side: "M2.500 3h11v10h-11zM10 3v10",
  edit: "M3 13l.7-3L10.500 3.200l2.300 2.300L6 12.300z",
  branch: "M4.500 2v12M4.500 8c5 0 7-1 7-4",
  key: "M10.500 2.500a3 3 0 1 0 0 6a3 3 0 1 0 0-6M8.300 7.700 3 13M4.500 11.500 6 13",
  user: "M8 2.500a2.500 2.500 0 1 0 0 5a2.500 2.500 0 1 0 0-5M3 13.500c.5-3 2.500-4 5-4s4.500 1 5 4",
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
  const active = document.activeElement;
  return Boolean(active && (active.matches("input, textarea, select") || active.isContentEditable));
}

let liveRegion;

/** Say something to screen readers. */
export function announce(text) {
  liveRegion ??= document.getElementById("announcer");
  if (liveRegion) liveRegion.textContent = text;
}
