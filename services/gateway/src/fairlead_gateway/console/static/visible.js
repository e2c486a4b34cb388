// Makes characters visible that could hide what a command does: controls, bidi marks, odd blanks. Pure.

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]|[\u{e0000}-\u{e0fff}]/gu;

/** The parts of a text: `{text}` as it is, and `{mark}` for a character that nobody would see. */
export function visibleParts(text) {
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > from) parts.push({ text: text.slice(from, match.index) });
    parts.push({ mark: markOf(match[0]) });
    from = match.index + match[0].length;
  }
  if (from < text.length) parts.push({ text: text.slice(from) });
  return parts;
}

function markOf(character) {
  if (character === "\r") return "␍";
  if (character === "\u001b") return "ESC";
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/** The text with every such character as a mark, for places that hold plain text only. */
export function visibleText(text) {
  return visibleParts(text).map((part) => part.text ?? `⟨${part.mark}⟩`).join("");
}
