// One session: its transcript, its composer, its side, and what a person can do with it.

import { now, patch, post, remove, sessionPath } from "../api.js";
import { askText, attempt, confirmDialog, openMenu, settle, toast } from "../dialog.js";
import { button, fill, h, icon, show } from "../dom.js";
import { formatAgo, formatCost, formatCount, shortPath, stateTone, stateWords, totalTokens } from "../format.js";
import { AskList } from "../parts/ask.js";
import { closedReason, noticeOf, welcome } from "../parts/notice.js";
import { Composer } from "../parts/composer.js";
import { SidePanel } from "../parts/side.js";
import { renderItem, updateItem } from "../parts/transcript_item.js";
import { SessionStore } from "../session_store.js";
import { visibleText } from "../visible.js";
import { VirtualList } from "../virtual.js";

const GUESSES = { note: 34, user: 80, system: 40, synthetic: 40, compaction: 40, "agent-switched": 34, "model-switched": 34 };

const WIDE = matchMedia("(min-width: 1000px)");

class SessionView extends HTMLElement {
  /** @type {import("../main.js").App} */
  app;
  /** @type {string[]} */
  params;

  /** Beside the transcript where there is room. A narrow window begins without it. */
  placeSide = () => this.classList.toggle("side-open", WIDE.matches && localStorage.getItem("fairlead-side") !== "closed");

  connectedCallback() {
    this.sessionID = this.params[0];
    const { app } = this;
    this.keys = {
      j: ["Scroll down", () => this.scroll(1)],
      k: ["Scroll up", () => this.scroll(-1)],
      a: ["Approve once, or answer", () => this.choose("once")],
      A: ["Approve always", () => this.choose("always")],
      x: ["Reject", () => this.choose("reject")],
      Escape: ["Interrupt", () => this.interrupt()],
      r: ["Resume", () => this.resume()],
      c: ["Write", () => this.composer.field.focus()],
      C: ["Compact", () => this.compact()],
      s: ["Side panel", () => this.toggleSide()],
      G: ["To the end", () => this.list.toEnd()],
    };
    this.store = new SessionStore(app, this.sessionID, (changed) => this.onChange(changed));
    this.composer = new Composer(app, this.sessionID);
    this.composer.onSent = () => this.list.toEnd();
    this.side = new SidePanel(app, this.sessionID, () => this.store);
    const context = { app, sessionID: this.sessionID, state: () => this.store.state };
    this.list = new VirtualList({
      keyOf: (item) => item.id,
      render: (item) => renderItem(item, context),
      update: updateItem,
      guess: (item) => GUESSES[item.type] ?? 120 + 46 * (item.content?.length ?? 0),
      stick: true,
      label: "Transcript",
      onTop: () => this.store.loadOlder(),
    });
    this.list.onPin = (pinned) => show(this.jump, !pinned);
    this.build();
    this.listener = () => this.drawHead();
    app.live.addEventListener("sessions", this.listener);
    WIDE.addEventListener("change", this.placeSide);
    app.live.shownIds = () => [this.sessionID];
    this.store.start();
  }

  disconnectedCallback() {
    this.store.stop();
    this.app.live.removeEventListener("sessions", this.listener);
    WIDE.removeEventListener("change", this.placeSide);
    this.app.live.shownIds = undefined;
  }

  build() {
    const may = this.app.may("session:write");
    this.heading = h("h1.session-title", { title: "Rename" }, h("button", { type: "button", disabled: !may, onclick: () => this.rename() }, "…"));
    this.state = h("span.state");
    this.facts = h("span.dim.facts-line");
    this.banner = h("div.banner", { role: "status", hidden: true });
    this.stopButton = button("Interrupt", { class: "danger", hidden: true, disabled: !may, title: "Interrupt (Esc)", onclick: () => this.interrupt(true) }, "stop");
    this.resumeButton = button("Resume", { hidden: true, disabled: !may, title: "Resume (r)", onclick: () => this.resume() }, "play");
    this.compactButton = button("Compact (C)", { quiet: true, disabled: !may, onclick: () => this.compact() }, "fold");
    this.more = button("More", { quiet: true, onclick: () => openMenu(this.more, this.actions()) }, "more");
    this.sideButton = button("Side panel (s)", { quiet: true, onclick: () => this.toggleSide() }, "side");
    this.jump = button("To the end", { class: "jump", hidden: true, onclick: () => this.list.toEnd() }, "down");
    this.asksPlace = h("div.asks", { "aria-live": "polite" });
    this.asks = new AskList(this.app, this.asksPlace);
    this.welcome = h("div.empty", { hidden: true });
    this.notice = h("div.notice", { role: "status", hidden: true });
    this.olderNote = h("div.loading.small", { hidden: true }, "Loading earlier messages…");
    fill(this,
      h("div.session-head", h("a.back", { href: "/", "aria-label": "All sessions" }, icon("back")), h("div.grow", this.heading, h("div.line", this.state, this.facts)), this.stopButton, this.resumeButton, this.compactButton, this.sideButton, this.more),
      h("div.session-body", h("div.conversation", this.banner, this.welcome, this.olderNote, h("div.transcript-place", this.list.element, this.jump), this.asksPlace, this.notice, this.composer.element), this.side.element));
    const wide = WIDE.matches;
    this.placeSide();
    this.composer.grow();
    this.drawWelcome();
    this.drawHead();
    if (wide) this.composer.field.focus();
  }

  catalogReady() {
    this.drawHead();
  }

  actions() {
    const id = this.sessionID;
    const may = this.app.may("session:write");
    const archived = this.store.isArchived();
    return [
      { words: "Rename…", run: () => this.rename(), disabled: !may },
      { words: "Compact", run: () => this.compact(), disabled: !may },
      { words: "Move to another directory…", run: () => this.moveTo(), disabled: !may },
      { words: "Set a budget…", run: () => this.setBudget(), disabled: !may },
      { words: "Export", run: () => location.assign(sessionPath(id, "/export")) },
      { words: "Copy the id", run: () => navigator.clipboard.writeText(id) },
      archived ? { words: "Take out of the archive", run: () => this.unarchive(), disabled: !may } : { words: "Archive", run: () => attempt(this.more, () => remove(sessionPath(id)).then(() => toast("Archived"))), disabled: !may },
      { words: "Delete for ever…", danger: true, run: () => this.purge(), disabled: !this.app.may("session:purge") },
    ];
  }

  compact() {
    if (!this.compactButton.disabled) attempt(this.compactButton, () => post(sessionPath(this.sessionID, "/compact"), {}), { stay: true });
  }

  async rename() {
    const title = await askText("Rename the session", { value: this.titleText() });
    if (title?.trim()) attempt(this.more, () => patch(sessionPath(this.sessionID), { title: title.trim() }));
  }

  async moveTo() {
    const directory = await askText("Move to another directory", { value: this.store.info?.location.directory ?? "", yes: "Move" });
    if (directory?.trim()) attempt(this.more, () => post(sessionPath(this.sessionID, "/move"), { location: { directory: directory.trim() } }));
  }

  async setBudget() {
    const text = await askText("Budget in USD", { value: String(this.store.state.profile.budget?.cost ?? ""), yes: "Set" });
    if (text === undefined) return;
    const cost = Number.parseFloat(text);
    attempt(this.more, () => post(sessionPath(this.sessionID, "/budget"), Number.isFinite(cost) && cost >= 0 ? { cost } : {}));
  }

  async purge() {
    const yes = await confirmDialog("Delete for ever", "The log, the messages and the outputs of this session are erased. Nobody can bring them back.", { yes: "Delete for ever", danger: true, typed: "delete" });
    if (!yes) return;
    await attempt(this.more, async () => {
      await remove(`${sessionPath(this.sessionID)}?purge=true`);
      toast("Deleted");
      this.app.go("/");
    });
  }

  async interrupt(sure = false) {
    if (!this.store.isWorking()) return;
    if (!sure && !(await confirmDialog("Interrupt the agent?", "What runs now stops. Pending input stays.", { yes: "Interrupt", danger: true }))) return;
    attempt(this.stopButton, () => post(sessionPath(this.sessionID, "/interrupt"), {}), { stay: true });
  }

  resume() {
    if (!this.resumeButton.hidden) attempt(this.resumeButton, () => post(sessionPath(this.sessionID, "/resume"), {}), { stay: true });
  }

  toggleSide() {
    const open = this.classList.toggle("side-open");
    localStorage.setItem("fairlead-side", open ? "open" : "closed");
  }

  scroll(direction) {
    this.list.element.scrollBy({ top: direction * 120 });
  }

  choose(what) {
    this.asksPlace.firstElementChild?.choose[what]?.click();
  }

  titleText() {
    return this.store.state.profile.title ?? this.store.info?.title ?? "";
  }

  onChange(changed) {
    const { state } = this.store;
    this.list.set(state.items, changed);
    show(this.olderNote, Boolean(this.store.loading));
    this.drawWelcome();
    // A pending action ends with its event.
    if (changed && this.restKey !== state.rest) settle(this.stopButton);
    if (changed && state.openStep) settle(this.resumeButton);
    if (!state.compacting && this.compacting) settle(this.compactButton);
    this.restKey = state.rest;
    this.compacting = state.compacting;
    this.asks.set(this.store.allAsks());
    this.side.draw();
    this.drawHead();
    this.drawBanner();
  }

  drawHead() {
    const session = this.app.live.sessions.get(this.sessionID);
    const { state } = this.store;
    const title = this.titleText() || (this.store.isLost() ? "Session" : "…");
    const label = this.heading.firstElementChild;
    if (label.textContent !== visibleText(title)) {
      label.textContent = visibleText(title);
      this.app.setTitle(visibleText(title));
    }
    const status = this.store.status(session);
    const tone = stateTone(status);
    const words = stateWords(status, now());
    const key = `${tone} ${words}`;
    if (this.stateKey !== key) {
      this.stateKey = key;
      this.state.className = `state ${tone}`;
      fill(this.state, h("span.dot", { class: tone }), words);
    }
    const info = session ?? this.store.info;
    const parent = info?.parentID ?? state.profile.parentID;
    const factKey = JSON.stringify([info?.cost, info?.tokens, info?.location, info?.agent, parent]);
    if (info && factKey !== this.factKey) {
      this.factKey = factKey;
      fill(this.facts, h("bdi", { title: info.location.directory }, shortPath(visibleText(info.location.directory))), h("span", info.agent ?? ""), h("span", `${formatCount(totalTokens(info.tokens))} tok`), h("span", formatCost(info.cost)), parent ? h("a", { href: `/s/${parent}` }, "sub-agent of another session") : null);
    }
    const working = this.store.isWorking();
    show(this.stopButton, working);
    show(this.resumeButton, !working && ["interrupted", "failed", "resting", "retrying"].includes(status.state));
    this.drawNotice(status, working);
    this.composer.setState({ inbox: state.inbox, shells: state.shells, working, closed: closedReason(this.app, this.store), has: (id) => state.places.has(id) || state.inbox.some((input) => input.id === id) });
    this.composer.setProfile({ agent: state.profile.agent ?? info?.agent, model: state.profile.model ?? info?.model });
  }

  /** What stands where a transcript would be. */
  drawWelcome() {
    const { store } = this;
    const lost = store.isLost();
    const shown = lost || !store.state.items.length;
    show(this.welcome, shown && !store.state.inbox.length);
    for (const element of [this.list.element.parentElement, this.composer.element]) show(element, !lost);
    this.classList.toggle("lost", lost);
    const key = lost ? store.connection : store.ready;
    if (!shown || key === this.welcomeKey) return;
    this.welcomeKey = key;
    fill(this.welcome, welcome(store));
  }

  /** A state that a person can end, and how. */
  drawNotice(status, working) {
    const { tone, words, act } = noticeOf(this.store, status, working) ?? {};
    show(this.notice, Boolean(words));
    const text = visibleText(`${words}${tone === "later" && status.wakeAt ? ` The next attempt is ${formatAgo(status.wakeAt, now())}.` : ""}`);
    if (this.noticeKey === text) return;
    this.noticeKey = text;
    this.notice.className = `notice ${tone}`;
    const acts = { resume: ["Try again", () => this.resume()], budget: ["Set a budget…", () => this.setBudget()], unarchive: ["Take out of the archive", () => this.unarchive()] };
    fill(this.notice, h("span.grow", text), acts[act] && button(acts[act][0], { class: "small", disabled: !this.app.may("session:write"), onclick: acts[act][1] }));
  }

  unarchive() {
    attempt(this.more, () => post(sessionPath(this.sessionID, "/unarchive"), {}));
  }

  drawBanner() {
    const { connection, broken, retryAt } = this.store;
    let text = null;
    if (this.store.isLost()) text = null;
    else if (connection === "broken") text = `The log cannot be read any further: ${broken}. Only this session stops; an operator mends it.`;
    else if (connection === "waiting" && this.store.ready) text = `Connection lost. The page shows what it has and connects again${retryAt - Date.now() > 1500 ? ` in ${Math.ceil((retryAt - Date.now()) / 1000)} s` : ""}.`;
    show(this.banner, text !== null);
    this.banner.textContent = text ?? "";
  }

  tick() {
    if (this.store.connection === "waiting") this.drawBanner();
    this.drawHead();
  }
}

customElements.define("fl-session", SessionView);
