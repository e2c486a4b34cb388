// Shows markdown as elements. What is hidden in a link is shown, and nothing is loaded from elsewhere.

import { attempt } from "./dialog.js";
import { button, h } from "./dom.js";
import { namesHost, parseMarkdown, stableEnd } from "./markdown.js";

const SHOWN_MAX = 60_000;
const TAIL_MAX = 4000;
const LONG = 20_000;
/** A last line that has only the mark of a block yet: what it begins is not known, and would move when it is. */
const OPEN_MARK = /(?:^|\n) {0,3}(?:#{1,6}|[-*+>|]|\d{1,9}[.)]?|\x60{1,3})[ ]*$/;

/** The elements of a markdown text. A very long text is cut, with a button for the rest. */
export function prose(text) {
  const element = h("div.prose", { dir: "auto" });
  if (text.length <= SHOWN_MAX) {
    element.append(...blocks(parseMarkdown(text)));
    return element;
  }
  const line = text.lastIndexOf("\n", SHOWN_MAX) + 1;
  const end = line > SHOWN_MAX / 2 ? line : SHOWN_MAX;
  element.append(...blocks(parseMarkdown(text.slice(0, end))));
  element.append(moreButton(text.slice(end), element));
  return element;
}

function moreButton(rest, place) {
  const more = button(`Show ${rest.length.toLocaleString("en")} more characters`, {
    class: "link",
    onclick: () => {
      place.append(longText(rest));
      more.remove();
    },
  });
  return more;
}

/** Plain text of any length, in pieces, so that no line is laid out whole. */
export function longText(text) {
  const element = h("pre.plain");
  for (let at = 0; at < text.length; at += 20_000) element.append(h("span.piece", text.slice(at, at + 20_000)));
  return element;
}

/** Plain text, cut if it is very long. */
export function plain(text) {
  if (text.length <= SHOWN_MAX) return h("pre.plain", text);
  const element = h("div", h("pre.plain", text.slice(0, SHOWN_MAX)));
  element.append(moreButton(text.slice(SHOWN_MAX), element));
  return element;
}

/** Markdown that grows: finished blocks are made once, and only the last one is made anew. */
export class GrowingProse {
  constructor() {
    this.tail = h("div.tail");
    this.element = h("div.prose.live", { dir: "auto" }, this.tail);
    this.stable = 0;
  }

  /** The text has ended. True if what stands here is what `prose` would make of it, or nearly so in a very long one. */
  finish(text) {
    if (this.text !== text || (this.cut && text.length < LONG) || OPEN_MARK.test(text)) return false;
    this.element.classList.remove("live");
    return true;
  }

  update(text) {
    this.text = text;
    if (text.length < this.stable) {
      this.stable = 0;
      this.element.replaceChildren(this.tail);
    }
    const end = stableEnd(text, this.stable);
    if (end > this.stable) {
      for (const block of blocks(parseMarkdown(text.slice(this.stable, end)))) this.tail.before(block);
      this.stable = end;
    }
    let open = text.slice(this.stable);
    // A paragraph without an end is shown in parts, so that a new word never costs the whole of it.
    while (open.length > TAIL_MAX && !/^ {0,3}(`{3}|~{3})/.test(open)) {
      this.cut = true;
      const cut = open.lastIndexOf(" ", TAIL_MAX / 2) + 1 || TAIL_MAX / 2;
      for (const block of blocks(parseMarkdown(open.slice(0, cut)))) this.tail.before(block);
      this.stable += cut;
      open = open.slice(cut);
    }
    if (open.length > SHOWN_MAX) this.tail.replaceChildren(h("pre.plain", `…${open.slice(-SHOWN_MAX / 4)}`));
    else this.tail.replaceChildren(...blocks(parseMarkdown(open.replace(OPEN_MARK, ""))));
  }
}

function blocks(tree) {
  return tree.map(block);
}

function block(node) {
  switch (node.type) {
    case "heading":
      // The page has the first two levels.
      return h(`h${Math.min(6, node.level + 2)}`, inline(node.inline));
    case "code":
      return codeBlock(node.text, node.language);
    case "quote":
      return h("blockquote", blocks(node.blocks));
    case "list":
      return h(node.ordered ? "ol" : "ul", { start: node.start }, node.items.map((item) => h("li", item.length === 1 && item[0].type === "paragraph" ? inline(item[0].inline) : blocks(item))));
    case "table":
      return h("div.table", h("table", h("thead", h("tr", node.head.map((cell) => h("th", { scope: "col" }, inline(cell))))), h("tbody", node.rows.map((row) => h("tr", row.map((cell) => h("td", inline(cell))))))));
    case "rule":
      return h("hr");
    default:
      return h("p", inline(node.inline));
  }
}

/** Code with a button that copies it. */
export function codeBlock(text, language = "") {
  const code = h("code", text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text);
  const head = h("div.code-head", h("span", language), copyButton(() => text));
  return h("div.code", head, h("pre", { tabindex: "0" }, code));
}

export function copyButton(read, words = "Copy", shown = false) {
  const element = button(words, {
    quiet: !shown,
    class: shown ? "small" : "copy",
    onclick: () => attempt(null, async () => {
      // Browsers have a clipboard for pages of this computer and over TLS alone.
      if (!navigator.clipboard) throw new Error("This page may not copy: open it over HTTPS, or select the text.");
      await navigator.clipboard.writeText(read());
      element.classList.add("done");
      setTimeout(() => element.classList.remove("done"), 1200);
    }),
  }, "copy");
  return element;
}

function inline(pieces) {
  return pieces.map((piece) => {
    switch (piece.type) {
      case "code":
        return h("code", piece.text);
      case "strong":
        return h("strong", inline(piece.inline));
      case "emphasis":
        return h("em", inline(piece.inline));
      case "struck":
        return h("s", inline(piece.inline));
      case "link":
        return [linkElement(piece), piece.after];
      default:
        return piece.text;
    }
  });
}

function linkElement(piece) {
  const words = inline(piece.inline);
  const shown = piece.inline.map((part) => part.text ?? "").join("");
  const names = namesHost(shown, piece.host) ? null : h("span.target", ` (${piece.host})`);
  return h("a", { href: piece.target, title: piece.target, target: "_blank", rel: "noopener noreferrer nofollow" }, h("bdi", words), names);
}
