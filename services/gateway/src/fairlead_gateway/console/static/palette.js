// The palette: every session and every action, by a few letters.

import { get, now } from "./api.js";
import { fill, h } from "./dom.js";
import { openDialog } from "./dialog.js";
import { shortPath, stateTone, stateWords } from "./format.js";
import { urgency } from "./session_rows.js";
import { visibleText } from "./visible.js";

const URGENT_MAX = 5;

/** How well a text fits the letters: they have to come in order. Higher is better, 0 is not at all. Pure. */
export function fitness(text, letters) {
  if (!letters) return 1;
  const hay = text.toLowerCase();
  const needle = letters.toLowerCase();
  const at = hay.indexOf(needle);
  if (at >= 0) return 1000 - at - (hay.length - needle.length) / 100;
  let from = 0;
  let gaps = 0;
  for (const letter of needle) {
    const found = hay.indexOf(letter, from);
    if (found < 0) return 0;
    gaps += found - from;
    from = found + 1;
  }
  return Math.max(1, 500 - gaps);
}

/** Open the palette. `actions` are `{words, run, hint}`. */
export function openPalette({ actions, live, go }) {
  return openDialog("Go to", (close) => {
    let chosen = 0;
    let entries = [];
    const list = h("div.palette-list", { role: "listbox", id: "palette-list", "aria-label": "Results" });
    const field = h("input.palette-field", {
      placeholder: "Session or action…",
      "aria-label": "Session or action",
      role: "combobox",
      "aria-expanded": "true",
      "aria-controls": "palette-list",
      autocomplete: "off",
      spellcheck: "false",
    });
    const run = (entry) => {
      close();
      entry?.run();
    };
    const draw = () => {
      fill(list, entries.map((entry, at) =>
        h("div.palette-entry", { role: "option", id: `entry-${at}`, "aria-selected": String(at === chosen), class: at === chosen ? "chosen" : "", onclick: () => run(entry) },
          entry.tone && h("span.dot", { class: entry.tone }), h("bdi.grow", entry.words), h("span.dim", entry.hint ?? ""))));
      field.setAttribute("aria-activedescendant", `entry-${chosen}`);
      list.children[chosen]?.scrollIntoView({ block: "nearest" });
      if (!entries.length) fill(list, h("p.empty", "Nothing fits. Type a part of a title."));
    };
    const update = (key = "") => {
      const entryOf = (session) => ({
        key: session.id,
        words: visibleText(session.title),
        hint: `${stateWords(session.status, now())} · ${shortPath(visibleText(session.location.directory))}`,
        tone: stateTone(session.status),
        run: () => go(`/s/${session.id}`),
      });
      const sessions = [...live.sessions.values()].sort((a, b) => (urgency(a.status) ?? 9) - (urgency(b.status) ?? 9) || b.time.updated - a.time.updated);
      const urgent = sessions.slice(0, URGENT_MAX).filter(({ status }) => urgency(status) !== undefined).length;
      const rate = (words, entry) => [fitness(words, field.value), entry];
      const rateSession = (session) => rate(`${session.title} ${session.location.directory}`, () => entryOf(session));
      // Before a letter is typed: what waits and what runs, then the actions, then the rest.
      const rated = [...sessions.slice(0, urgent).map(rateSession), ...actions.map((action) => rate(action.words, () => ({ ...action, key: action.words }))), ...sessions.slice(urgent).map(rateSession)];
      entries = rated.filter(([fit]) => fit > 0).sort((a, b) => b[0] - a[0]).slice(0, 40).map(([, entry]) => entry());
      chosen = Math.max(0, entries.findIndex((entry) => entry.key === key));
      draw();
    };
    const look = async () => {
      const query = new URLSearchParams({ limit: "20", ...(field.value ? { search: field.value } : { roots: "true" }) });
      const page = await get(`/api/session/overview?${query}`).catch(() => null);
      if (!page || !list.isConnected) return;
      live.put(page.data);
      // Who has moved down already stays where they are.
      update(chosen ? entries[chosen]?.key : "");
    };
    let search = 0;
    field.addEventListener("input", () => {
      update();
      clearTimeout(search);
      if (field.value.length > 1) search = setTimeout(look, 150);
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") chosen = Math.min(chosen + 1, entries.length - 1);
      else if (event.key === "ArrowUp") chosen = Math.max(chosen - 1, 0);
      else if (event.key === "Enter") run(entries[chosen]);
      else return;
      event.preventDefault();
      draw();
    });
    update();
    look();
    return [field, list];
  }, { kind: "palette" });
}
