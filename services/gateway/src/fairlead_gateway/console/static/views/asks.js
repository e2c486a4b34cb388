// The inbox of people: every permission and question of every session, newest first.

import { now } from "../api.js";
import { fill, h, show } from "../dom.js";
import { formatAgo, formatDate, shortPath } from "../format.js";
import { AskList } from "../parts/ask.js";
import { visibleText } from "../visible.js";

class AsksView extends HTMLElement {
  /** @type {import("../main.js").App} */
  app;

  connectedCallback() {
    const { live } = this.app;
    this.place = h("div.asks");
    this.empty = h("div.empty", { hidden: true }, h("h2", "Nothing waits for you"), h("p", "When an agent needs a permission or has a question, it stands here, in every open page at once."));
    this.asks = new AskList(this.app, this.place);
    this.selected = null;
    this.at = 0;
    this.keys = {
      j: ["Next ask", () => this.move(1)],
      k: ["Ask before", () => this.move(-1)],
      a: ["Approve once, or answer", () => this.choose("once")],
      A: ["Approve always", () => this.choose("always")],
      x: ["Reject", () => this.choose("reject")],
      Enter: ["Open the session", () => this.current() && this.app.go(`/s/${this.current().request.sessionID}`)],
    };
    this.heading = h("p.dim", { role: "status" });
    fill(this, h("div.page-head", h("h1", "Inbox"), this.heading), this.empty, h("div.scroller.padded", { tabindex: "0", role: "region", "aria-label": "Asks" }, this.place));
    this.listener = () => this.draw();
    live.addEventListener("asks", this.listener);
    live.refreshAsks();
    this.draw();
  }

  disconnectedCallback() {
    this.app.live.removeEventListener("asks", this.listener);
  }

  draw() {
    const asks = [...this.app.live.asks].sort((a, b) => b.askedAt - a.askedAt);
    this.list = asks;
    // What is chosen stays chosen when another ask comes: a key must never answer something else.
    if (!this.current()) this.selected = asks[Math.max(0, Math.min(this.at, asks.length - 1))]?.request.id;
    this.at = asks.indexOf(this.current());
    this.asks.set(asks, (ask) => this.context(ask));
    const { asksKnown, asksProblem } = this.app.live;
    show(this.empty, asksKnown && !asks.length);
    show(this.place.parentElement, asks.length);
    this.heading.textContent = asksProblem || (asks.length ? `${asks.length} waiting` : asksKnown ? "" : "Loading…");
    this.mark();
  }

  context(ask) {
    const where = h("span.ask-context",
      h("a", { href: `/s/${ask.request.sessionID}` }, h("bdi", visibleText(ask.title))),
      h("span.dim", [visibleText(ask.agent ?? ""), shortPath(visibleText(ask.directory))].filter(Boolean).join(" · ")),
      h("time.dim", { title: formatDate(ask.askedAt), "data-at": ask.askedAt }, formatAgo(ask.askedAt, now())),
      ask.expiresAt ? h("time.expiry", { title: formatDate(ask.expiresAt), "data-at": ask.expiresAt, "data-words": "expires " }, `expires ${formatAgo(ask.expiresAt, now())}`) : null);
    return [where, ask.lastWords ? h("blockquote.words", visibleText(ask.lastWords)) : null];
  }

  current() {
    return this.list?.find((ask) => ask.request.id === this.selected);
  }

  mark() {
    for (const card of this.place.children) card.classList.toggle("chosen", card === this.card());
  }

  move(step) {
    if (!this.list?.length) return;
    this.at = Math.max(0, Math.min(this.list.length - 1, this.at + step));
    this.selected = this.list[this.at].request.id;
    this.mark();
    this.card()?.scrollIntoView({ block: "nearest" });
  }

  card() {
    return this.asks.cards.get(this.selected);
  }

  choose(what) {
    this.card()?.choose[what]?.click();
  }

  tick(now) {
    if (now % 10_000 >= 1000) return;
    for (const time of this.place.querySelectorAll("time")) time.textContent = `${time.dataset.words ?? ""}${formatAgo(Number(time.dataset.at), now)}`;
  }
}

customElements.define("fl-asks", AsksView);
