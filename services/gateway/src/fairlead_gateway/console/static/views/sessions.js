// All sessions, live: what runs, what waits, what it cost.

import { get } from "../api.js";
import { button, fill, h, show } from "../dom.js";
import { formatCost, shortPath } from "../format.js";
import { SessionRow } from "../parts/session_row.js";
import { sessionRows } from "../session_rows.js";
import { visibleText } from "../visible.js";
import { VirtualList } from "../virtual.js";

const PAGE = 200;
const STATES = [["", "All"], ["waiting", "Waiting for you"], ["running", "Running"], ["failed", "Failed"], ["idle", "Idle"], ["archived", "Archived"]];

class SessionsView extends HTMLElement {
  /** @type {import("../main.js").App} */
  app;
  filter = { state: "", project: "", text: "" };
  grouped = false;

  connectedCallback() {
    const { live } = this.app;
    // Who comes back finds the list as it was.
    this.app.listed ??= { filter: { state: "", project: "", text: "" }, grouped: false, top: 0 };
    Object.assign(this, { filter: this.app.listed.filter, grouped: this.app.listed.grouped });
    this.ids = new Set(this.app.listed.ids);
    this.cursor = undefined;
    this.selected = null;
    this.keys = {
      j: ["Next session", () => this.move(1)],
      k: ["Session before", () => this.move(-1)],
      Enter: ["Open the session", () => this.selected && this.app.go(`/s/${this.selected}`)],
    };
    this.list = new VirtualList({
      keyOf: (row) => row.key,
      render: (row) => this.renderRow(row),
      update: (element, row) => this.updateRow(element, row),
      guess: (row) => (row.head ? 38 : 62),
      fixed: true,
      label: "Sessions",
    });
    this.list.element.addEventListener("scroll", () => {
      this.top = this.list.element.scrollTop;
      this.loadMore();
    }, { passive: true });
    this.build();
    live.shownIds = () => [...this.list.shown.keys()];
    this.unlisten = ["sessions", "counts", "reconnected", "event"].map((name) => {
      const handler = (event) => this.onLive(name, event.detail);
      live.addEventListener(name, handler);
      return () => live.removeEventListener(name, handler);
    });
    this.load();
    live.refreshCounts();
    this.refreshToday();
  }

  disconnectedCallback() {
    this.unlisten.forEach((stop) => stop());
    this.app.listed = { filter: this.filter, grouped: this.grouped, top: this.top, ids: this.ids };
    this.app.live.shownIds = undefined;
  }

  build() {
    this.totals = h("dl.totals");
    this.field = h("input.search", { type: "search", placeholder: "Search titles, directories, models…  /", "aria-label": "Search sessions", value: this.filter.text, oninput: () => this.setFilter({ text: this.field.value }), onkeydown: (event) => event.key === "Enter" && this.move(1) });
    this.chips = h("div.chips", { role: "group", "aria-label": "State" }, STATES.map(([state, words]) => h("button.chip", { type: "button", "aria-pressed": String(state === this.filter.state), "data-state": state, onclick: () => this.setFilter({ state }) }, words)));
    this.projects = h("select", { "aria-label": "Project", onchange: () => this.setFilter({ project: this.projects.value }) }, h("option", { value: "" }, "All projects"));
    this.grouping = h("button.chip", { type: "button", "aria-pressed": String(this.grouped), onclick: () => {
      this.grouped = !this.grouped;
      this.grouping.setAttribute("aria-pressed", String(this.grouped));
      this.draw();
    } }, "By project");
    this.empty = h("div.empty", { hidden: true });
    this.note = h("p.loading", "Loading…");
    fill(this,
      h("div.page-head", h("h1", "Sessions"), this.totals, button("New session", { class: "primary", onclick: () => this.app.newSession(), title: "New session (n)" }, "plus")),
      h("div.filters", this.field, this.chips, this.projects, this.grouping),
      this.note, this.empty, this.list.element);
    this.drawTotals();
  }

  /** `/` */
  search() {
    this.field.focus();
    this.field.select();
    return true;
  }

  async load() {
    try {
      const [active] = await Promise.all([get("/api/session/active"), this.loadPage()]);
      const asked = this.app.live.asks.map((ask) => ask.request.sessionID);
      const missing = [...new Set([...Object.keys(active.data), ...asked])].filter((id) => !this.ids.has(id)).slice(0, 100);
      if (missing.length) this.add((await get(`/api/session/overview?ids=${missing.join(",")}`)).data);
    } catch (error) {
      this.note.textContent = error.message;
      setTimeout(() => this.isConnected && this.load(), 3000);
      return;
    }
    this.note.hidden = true;
    this.draw();
    const { top } = this.app.listed;
    if (top) this.list.element.scrollTop = top;
    this.app.listed.top = 0;
  }

  async loadPage() {
    const page = await this.readPage(this.cursor);
    if (!page) return;
    this.cursor = page.next;
    this.add(page.data);
  }

  /** Read what came while nobody listened: it is in front of what the list has. */
  async catchUp() {
    let cursor;
    do {
      const page = await this.readPage(cursor).catch(() => null);
      if (!page) return;
      cursor = page.data.some((session) => this.ids.has(session.id)) ? null : page.next;
      this.add(page.data);
    } while (cursor);
    this.draw();
  }

  /** A page of the list, and the cursor of the next one; undefined if the filter is another one by now. */
  async readPage(cursor) {
    const { text, project, state } = this.filter;
    const archived = state === "archived";
    const first = { ...(text.length > 1 && { search: text }), ...(project && { project }), ...(archived && { archived: "only" }) };
    const query = new URLSearchParams({ limit: String(PAGE), roots: "true", ...(cursor ? { cursor } : first) });
    const { data, cursor: { next } } = await get(`/api/session/overview?${query}`);
    const { filter } = this;
    if (text !== filter.text || project !== filter.project || archived !== (filter.state === "archived")) return undefined;
    return { data, next: data.length < PAGE ? null : next };
  }

  add(sessions) {
    for (const session of sessions) this.ids.add(session.id);
    this.app.live.put(sessions);
  }

  /** Load the next page when the end comes near, one at a time. */
  async loadMore() {
    const view = this.list.element;
    if (this.loading || !this.cursor || (!view.hidden && view.scrollTop + 3 * view.clientHeight < view.scrollHeight)) return;
    this.loading = true;
    const failed = await this.loadPage().catch((error) => error);
    this.loading = false;
    if (!failed) this.draw();
    else setTimeout(() => this.isConnected && this.loadMore(), 3000);
  }

  setFilter(change) {
    const { text: searched, state: before } = this.filter;
    Object.assign(this.filter, change);
    for (const chip of this.chips.children) chip.setAttribute("aria-pressed", String(chip.dataset.state === this.filter.state));
    this.draw();
    clearTimeout(this.searching);
    const other = change.project !== undefined || (before === "archived") !== (this.filter.state === "archived");
    if (change.text === undefined && !other) return;
    this.searching = setTimeout(async () => {
      if (searched === this.filter.text && !other) return;
      this.cursor = undefined;
      await this.loadPage().catch(() => {});
      this.draw();
    }, 180);
  }

  onLive(name, detail) {
    if (name === "event" && detail.type === "session.created" && !detail.data.parentID) this.ids.add(detail.data.sessionID);
    if (name === "sessions") {
      this.changed = new Set([...(this.changed ?? []), ...detail.map((session) => session.id)]);
      this.drawSoon();
    } else if (name === "counts") this.drawTotals();
    else if (name === "reconnected" && this.note.hidden) this.catchUp();
  }

  drawSoon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    const { sessions } = this.app.live;
    const known = [...this.ids].map((id) => sessions.get(id)).filter((session) => session && Boolean(session.time.archived) === (this.filter.state === "archived") && !session.parentID);
    this.rows = sessionRows(known, this.filter, this.grouped);
    this.list.set(this.rows, this.changed);
    this.changed = undefined;
    this.drawProjects(known);
    const none = !this.rows.length && this.note.hidden;
    show(this.empty, none);
    show(this.list.element, !none);
    if (none) this.drawEmpty(known.length);
    // A state may be rare: a list that is not full reads on.
    this.loadMore();
  }

  drawEmpty(known) {
    if (this.cursor) fill(this.empty, h("p.loading", { role: "status" }, "Looking through earlier sessions…"));
    else if (this.filter.state === "archived" && !this.filter.text) {
      fill(this.empty, h("h2", "The archive is empty"), h("p", "A session goes into the archive from its menu. It stays readable, and can be taken out again."), button("Show all", { onclick: () => this.setFilter({ state: "" }) }));
    } else if (known || this.filter.text || this.filter.state || this.filter.project) {
      fill(this.empty, h("h2", "No session fits"), h("p", "Clear the search, or choose another state."), button("Show all", { onclick: () => {
        this.field.value = "";
        this.setFilter({ text: "", state: "", project: "" });
      } }));
    } else {
      fill(this.empty, h("h2", "No sessions yet"), h("p", "A session is one durable conversation with an agent. It goes on when servers restart."), button("Start the first one", { class: "primary", onclick: () => this.app.newSession() }, "plus"), h("p.dim", "or in a terminal: ", h("code", 'fairlead prompt "Say hello"')));
    }
  }

  drawProjects(known) {
    const projects = new Map(known.map((session) => [session.projectID, session.location.directory]));
    if (projects.size === this.projects.options.length - 1) return;
    fill(this.projects, h("option", { value: "" }, "All projects"), [...projects].map(([id, directory]) => h("option", { value: id, selected: id === this.filter.project }, visibleText(shortPath(directory)))));
  }

  drawTotals() {
    const { counts } = this.app.live;
    const total = (words, value, tone) => h("div", { class: tone && value !== 0 ? tone : "" }, h("dt", words), h("dd", String(value)));
    fill(this.totals, total("running", counts.running, "run"), total("waiting for you", counts.asks, "you"), counts.broken ? total("broken", counts.broken, "bad") : null, total("today", this.today ?? "…"));
  }

  async refreshToday() {
    const midnight = new Date().setHours(0, 0, 0, 0);
    const usage = await get(`/api/tenant/activity?since=${midnight}`).catch(() => null);
    if (!usage || !this.isConnected) return;
    this.today = formatCost(usage.data.cost);
    this.drawTotals();
    setTimeout(() => this.isConnected && this.refreshToday(), 30_000);
  }

  renderRow(row) {
    if (row.head) return h("div.group-head", { role: "presentation" }, h("span", visibleText(row.head)), h("span.dim", String(row.count)));
    const { element } = new SessionRow();
    this.updateRow(element, row);
    return element;
  }

  updateRow(element, { session }) {
    if (!element.row || !session) return false;
    element.row.update(session, session.id === this.selected);
    return true;
  }

  move(step) {
    const ids = this.rows.filter((row) => row.session).map((row) => row.key);
    if (!ids.length) return;
    const at = ids.indexOf(this.selected);
    const before = this.selected;
    this.selected = ids[Math.max(0, Math.min(ids.length - 1, at + step))];
    this.list.set(this.rows, new Set([before, this.selected].filter(Boolean)));
    this.list.reveal(this.selected)?.focus({ preventScroll: true });
  }

  /** Times grow older. */
  tick(now) {
    if (now % 10_000 < 1000) this.list.set(this.rows ?? [], new Set(this.list.shown.keys()));
  }
}

customElements.define("fl-sessions", SessionsView);
