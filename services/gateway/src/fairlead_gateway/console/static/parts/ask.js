// One ask: exactly what the agent wants to do, and the answers that a person can give.

import { post, sessionPath } from "../api.js";
import { askText, attempt, toast } from "../dialog.js";
import { button, h } from "../dom.js";
import { parsePatch } from "../diff.js";
import { visibleParts, visibleText } from "../visible.js";

/** Text in which nothing can hide. */
export function exact(text) {
  return h("span.exact", { dir: "ltr" }, visibleParts(text).map((part) => part.text ?? h("span.mark", { title: `hidden character ${part.mark}` }, part.mark)));
}

/** What "always" would cover, in words. */
export function describeAlways(request) {
  const patterns = request.save ?? request.resources;
  return `${request.action}: ${patterns.join(", ")}`;
}

export async function replyPermission(request, reply, message) {
  await post(sessionPath(request.sessionID, `/permission/${request.id}/reply`), { reply, ...(message && { message }) });
}

/** The card stays pending until its event takes it away. Who comes second is told so. */
async function answer(element, work) {
  if (element.closest(".ask")?.querySelector(".pending")) return;
  await attempt(element, async () => {
    try {
      await work();
    } catch (error) {
      if (error.status !== 404 && error.status !== 409) throw error;
      toast("Somebody else answered first.");
    }
  }, { stay: true });
}

export function permissionCard(app, request, context) {
  const may = app.may("ask:reply");
  const mayAlways = may && app.may("approval:save");
  const once = button("Approve once", { class: "primary", disabled: !may, title: "Approve once (a)", onclick: () => answer(once, () => replyPermission(request, "once")) }, "check");
  const always = button("Always", { disabled: !mayAlways, title: mayAlways ? `Always (A): ${describeAlways(request)}` : "The scope approval:save is missing", onclick: () => answer(always, () => replyPermission(request, "always")) });
  const reject = button("Reject", { class: "danger", disabled: !may, title: "Reject (x)", onclick: () => answer(reject, () => replyPermission(request, "reject")) }, "cross");
  const words = button("Reject with words…", { class: "link", disabled: !may, onclick: async () => {
    const message = await askText("Why not?", { label: "What the model is told", yes: "Reject", multiline: true });
    if (message !== undefined) answer(words, () => replyPermission(request, "reject", message));
  } });
  const card = h("article.ask", { "aria-label": `Permission: ${request.action}`, "data-ask": request.id },
    h("header", h("span.dot.you"), h("strong", actionWords(request.action)), context),
    h("div.wants", request.resources.map((resource) => h("pre.command", exact(resource)))),
    metadata(request.metadata, request.resources),
    h("p.always", "Always would allow ", h("code", exact(describeAlways(request))), " in this project"),
    h("div.actions", words, reject, always, once));
  card.choose = { once, always, reject };
  return card;
}

function actionWords(action) {
  const words = { bash: "Run a command", edit: "Change a file", read: "Read a file", external_directory: "Work outside its location", webfetch: "Fetch a page", websearch: "Search the web", task: "Start a sub-agent" };
  return words[action] ?? `Use ${visibleText(action)}`;
}

function metadata(values, known) {
  if (!values) return null;
  const { diff, ...rest } = values;
  const plain = Object.entries(rest).filter(([, value]) => (typeof value === "string" && !known.includes(value)) || typeof value === "number");
  return h("div", diff ? diffView(diff) : null, plain.length ? h("dl.facts", plain.map(([name, value]) => [h("dt", visibleText(name)), h("dd", exact(String(value).slice(0, 2000)))])) : null);
}

/** A patch with line numbers and colours; the signs say it too. */
export function diffView(patch) {
  const rows = parsePatch(patch);
  const sign = { added: "+", removed: "-", same: " ", hunk: "" };
  return h("div.diff", { role: "table", "aria-label": "Changes", tabindex: "0" }, rows.slice(0, 2000).map((row) =>
    h("div", { role: "row", class: row.kind }, h("span.number", { role: "cell" }, String(row.old ?? "")), h("span.number", { role: "cell" }, String(row.new ?? "")), h("span.line", { role: "cell" }, sign[row.kind], exact(row.text.slice(0, 4000))))), rows.length > 2000 ? h("p.dim", `${rows.length - 2000} more lines`) : null);
}

export function questionCard(app, request, context) {
  const may = app.may("ask:reply");
  const groups = request.questions.map((question, at) => questionField(question, `${request.id}-${at}`));
  const send = button("Answer", { class: "primary", disabled: !may, title: "Answer (a)", onclick: () => groups.every((group) => !group.read().length) ? toast("Choose an answer, or write one.") : answer(send, () => post(sessionPath(request.sessionID, `/question/${request.id}/reply`), { answers: groups.map((group) => group.read()) })) }, "check");
  const dismiss = button("Dismiss", { disabled: !may, title: "The session stops", onclick: () => answer(dismiss, () => post(sessionPath(request.sessionID, `/question/${request.id}/reject`), {})) });
  const card = h("article.ask", { "aria-label": "Question", "data-ask": request.id },
    h("header", h("span.dot.you"), h("strong", request.questions.length > 1 ? "The agent asks" : "A question"), context),
    groups.map((group) => group.element), h("div.actions", dismiss, send));
  card.choose = { once: send, reject: dismiss };
  return card;
}

function questionField(question, name) {
  const type = question.multiple ? "checkbox" : "radio";
  const options = question.options.map((option) => h("label.option", h("input", { type, name, value: option.label }), h("span", h("strong", visibleText(option.label)), option.description ? h("span.dim", ` ${visibleText(option.description)}`) : null)));
  const own = h("input", { placeholder: options.length ? "Or in your own words…" : "Your answer…", "aria-label": "Your own answer" });
  const element = h("fieldset", h("legend", visibleText(question.question)), options, question.custom === false ? null : own);
  const read = () => {
    const chosen = [...element.querySelectorAll("input:checked")].map((field) => field.value);
    return own.value.trim() ? [...chosen, own.value.trim()] : chosen;
  };
  return { element, read };
}

/** The card of an ask, whatever its kind. */
export function askCard(app, kind, request, context) {
  return kind === "permission" ? permissionCard(app, request, context) : questionCard(app, request, context);
}

/** Cards by their ids: an ask that stays keeps its card, with what somebody typed into it. */
export class AskList {
  constructor(app, place) {
    this.app = app;
    this.place = place;
    /** @type {Map<string, any>} */
    this.cards = new Map();
  }

  /**
   * @param {import("../fold.js").Ask[]} asks
   * @param {(ask: any) => any} contextOf
   */
  set(asks, contextOf = () => undefined) {
    const wanted = new Set(asks.map((ask) => ask.request.id));
    for (const [id, card] of this.cards) {
      if (wanted.has(id)) continue;
      card.remove();
      this.cards.delete(id);
    }
    const ordered = asks.map((ask) => {
      const known = this.cards.get(ask.request.id);
      if (known) return known;
      const card = askCard(this.app, ask.kind, ask.request, contextOf(ask));
      this.cards.set(ask.request.id, card);
      return card;
    });
    // A card that is in its place is not touched: somebody may write into it.
    ordered.forEach((card, at) => this.place.children[at] === card || this.place.insertBefore(card, this.place.children[at] ?? null));
  }
}
