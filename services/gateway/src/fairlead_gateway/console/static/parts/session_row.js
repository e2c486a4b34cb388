// One row of the list of sessions. It changes in place: the focus stays, and a scroll makes few elements.

import { now } from "../api.js";
import { h } from "../dom.js";
import { formatAgo, formatCost, formatCount, formatDate, shortPath, stateTone, stateWords, totalTokens } from "../format.js";
import { visibleText } from "../visible.js";

export class SessionRow {
  constructor() {
    const parts = (count) => Array.from({ length: count }, () => h("span"));
    this.dot = h("span.dot");
    this.words = h("span");
    this.state = h("span.state", this.dot, this.words);
    this.title = h("bdi.title");
    this.directory = h("bdi");
    this.facts = parts(3);
    this.detail = h("span.bad-text");
    this.use = parts(2);
    this.time = h("time");
    this.element = h("a.session-row", { role: "listitem" }, this.state,
      h("span.what", this.title, h("span.where", this.directory, this.facts, this.detail)), h("span.use", this.use), this.time);
    this.element.row = this;
  }

  update(session, chosen) {
    const { status, location, agent, model } = session;
    const tone = stateTone(status);
    if (this.id !== session.id) this.element.setAttribute("href", `/s/${session.id}`);
    this.id = session.id;
    if (this.tone !== tone) {
      this.tone = tone;
      this.state.className = `state ${tone}`;
      this.dot.className = `dot ${tone}`;
    }
    write(this.words, stateWords(status, now()));
    write(this.title, visibleText(session.title));
    write(this.directory, shortPath(visibleText(location.directory)), location.directory);
    [agent, model?.id, status.pending && `${status.pending} pending`].forEach((fact, at) => write(this.facts[at], visibleText(fact || "")));
    write(this.detail, tone === "bad" ? visibleText((status.detail ?? "").slice(0, 120)) : "");
    write(this.use[0], `${formatCount(totalTokens(session.tokens))} tok`);
    write(this.use[1], formatCost(session.cost));
    write(this.time, formatAgo(session.time.updated, now()), formatDate(session.time.updated));
    this.element.classList.toggle("chosen", chosen);
    if (chosen) this.element.setAttribute("aria-current", "true");
    else this.element.removeAttribute("aria-current");
  }
}

function write(element, text, title) {
  if (element.textContent !== text) element.textContent = text;
  if (title !== undefined && element.title !== title) element.title = title;
}
