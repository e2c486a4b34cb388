// Reads the markdown that models write into a tree of plain values. Pure: it makes no elements.

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$/;
const LIST = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const DEPTH_MAX = 6;

/** The blocks of a text. Broken markdown is text. */
export function parseMarkdown(text, depth = 0) {
  return parseLines(text.split("\n"), depth);
}

function parseLines(lines, depth) {
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const [block, next] = parseBlock(lines, at, depth);
    blocks.push(block);
    at = next;
  }
  return blocks;
}

function parseBlock(lines, at, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return parseFence(lines, at, fence);
  const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(line);
  if (heading) return [{ type: "heading", level: heading[1].length, inline: parseInline(heading[2]) }, at + 1];
  if (/^ {0,3}([-*_])(\s*\1){2,}\s*$/.test(line)) return [{ type: "rule" }, at + 1];
  if (/^ {0,3}>/.test(line) && depth < DEPTH_MAX) return parseQuote(lines, at, depth);
  if (LIST.test(line) && depth < DEPTH_MAX) return parseList(lines, at, depth);
  if (line.includes("|") && isTableRule(lines[at + 1])) return parseTable(lines, at);
  return parseParagraph(lines, at, depth);
}

function parseFence(lines, at, fence) {
  const end = new RegExp(`^ {0,3}${fence[1][0]}{${fence[1].length},}\\s*$`);
  let last = at + 1;
  while (last < lines.length && !end.test(lines[last])) last += 1;
  return [{ type: "code", language: fence[2], text: lines.slice(at + 1, last).join("\n") }, last + 1];
}

function parseQuote(lines, at, depth) {
  let last = at;
  while (last < lines.length && /^ {0,3}>/.test(lines[last])) last += 1;
  const inner = lines.slice(at, last).map((line) => line.replace(/^ {0,3}> ?/, ""));
  return [{ type: "quote", blocks: parseLines(inner, depth + 1) }, last];
}

function parseList(lines, at, depth) {
  const first = LIST.exec(lines[at]);
  const ordered = /\d/.test(first[2]);
  const indent = first[1].length;
  const items = [];
  let last = at;
  while (last < lines.length) {
    const match = LIST.exec(lines[last]);
    if (match && match[1].length <= indent + 1 && /\d/.test(match[2]) === ordered && match[1].length >= indent) {
      items.push([match[3]]);
    } else if (items.length && lines[last].trim() && (/^\s{2,}/.test(lines[last]) || !startsBlock(lines[last]))) {
      items.at(-1).push(lines[last].replace(new RegExp(`^\\s{0,${indent + 4}}`), (found) => found.slice(Math.min(found.length, indent + 2))));
    } else if (items.length && !lines[last].trim() && /^\s{2,}\S/.test(lines[last + 1] ?? "")) {
      items.at(-1).push("");
    } else if (!lines[last].trim() && LIST.exec(lines[last + 1] ?? "")?.[1].length === indent) {
      // A blank line between two items.
    } else break;
    last += 1;
  }
  const start = ordered ? Number.parseInt(first[2], 10) : undefined;
  return [{ type: "list", ordered, start, items: items.map((item) => parseLines(item, depth + 1)) }, last];
}

function startsBlock(line) {
  return FENCE.test(line) || LIST.test(line) || /^ {0,3}(#{1,6}\s|>)/.test(line);
}

function isTableRule(line) {
  return line !== undefined && line.includes("-") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(line);
}

function parseTable(lines, at) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => parseInline(cell.trim().replaceAll("\\|", "|")));
  let last = at + 2;
  while (last < lines.length && lines[last].includes("|") && lines[last].trim()) last += 1;
  return [{ type: "table", head: cells(lines[at]), rows: lines.slice(at + 2, last).map(cells) }, last];
}

function parseParagraph(lines, at, depth) {
  let last = at + 1;
  while (last < lines.length && lines[last].trim() && !(startsBlock(lines[last]) && depth <= DEPTH_MAX)) last += 1;
  return [{ type: "paragraph", inline: parseInline(lines.slice(at, last).join("\n")) }, last];
}

const INLINE = /(`+)([\s\S]*?[^`])\1(?!`)|!\[([^\]\n]{0,500})\]\(([^()\s]{1,2000})(?:\s+"[^"]*")?\)|\[([^\]\n]{1,500})\]\(([^()\s]{0,2000}(?:\([^()\s]*\))?[^()\s]*)(?:\s+"[^"]*")?\)|(\*\*|__)(?=\S)([\s\S]{1,2000}?\S)\7(?!\w)|(?<!\w)([*_])(?=[^\s*_])([^*_\n]{0,1000}?[^\s*_])\9(?!\w)|~~(?=\S)([^~\n]{1,500})~~|(https?:\/\/[^\s<>"'`)\]]{1,2000})/g;
const INLINE_MAX = 20_000;

/** The pieces of a line of text: plain text, code, emphasis and links. */
export function parseInline(text, depth = 0) {
  if (text.length > INLINE_MAX || depth > 3) return [{ type: "text", text }];
  const pieces = [];
  let from = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > from) pieces.push({ type: "text", text: text.slice(from, match.index) });
    pieces.push(inlinePiece(match, depth));
    from = match.index + match[0].length;
  }
  if (from < text.length) pieces.push({ type: "text", text: text.slice(from) });
  return pieces;
}

function inlinePiece(match, depth) {
  const [whole, ticks, code, alt, image, label, target, , strong, , emphasis, struck, url] = match;
  if (ticks) return { type: "code", text: code.replace(/^ (.+) $/, "$1") };
  if (image !== undefined) return link(image, [{ type: "text", text: `image: ${alt || image}` }], whole);
  if (label !== undefined) return link(target, parseInline(label, depth + 1), whole);
  if (strong !== undefined) return { type: "strong", inline: parseInline(strong, depth + 1) };
  if (emphasis !== undefined) return { type: "emphasis", inline: parseInline(emphasis, depth + 1) };
  if (struck !== undefined) return { type: "struck", inline: parseInline(struck, depth + 1) };
  const trimmed = url.replace(/[.,;:!?]+$/, "");
  return link(trimmed, [{ type: "text", text: trimmed }], whole, url.slice(trimmed.length));
}

function link(target, inline, whole, after = "") {
  const safe = safeTarget(target);
  if (!safe) return { type: "text", text: whole };
  return { type: "link", target: safe.href, host: safe.host, inline, after };
}

/** The address of a link that a page may open; null for any other scheme, and for names without one. */
export function safeTarget(target) {
  try {
    const url = new URL(target);
    if (url.protocol === "mailto:") return { href: url.href, host: url.pathname };
    if (url.protocol !== "http:" && url.protocol !== "https:") return null;
    return { href: url.href, host: url.host };
  } catch {
    return null;
  }
}

/** Whether the words of a link name its host themselves. A part of them is not enough: "bank.example" holds "k.example". */
export function namesHost(words, host) {
  return words === host || safeTarget(words)?.host === host;
}

/** Where the last block of a growing text begins: everything before it stays as it is. */
export function stableEnd(text, from) {
  let stable = from;
  let at = from;
  let fence = null;
  while (at < text.length) {
    const end = text.indexOf("\n", at);
    if (end < 0) break;
    const line = text.slice(at, Math.min(end, at + 200));
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence) {
      if (mark && mark[0] === fence[0] && mark.length >= fence.length && line.trim() === mark) {
        fence = null;
        stable = end + 1;
      }
    } else if (mark) fence = mark;
    else if (!line.trim() && !/^[\s\d*+-]/.test(text[end + 1] ?? " ")) stable = end + 1;
    at = end + 1;
  }
  return stable;
}
