// Keeps the state of one open session: a page of messages or the whole log, then the stream, in batches.

import { get, sessionPath } from "./api.js";
import { emptySession, fold, fromMessages, prependMessages, reconnected } from "./fold.js";
import { StreamClient, backoffMs } from "./sse.js";

/** A session with fewer events is read from its beginning: then every separator is there too. */
const WHOLE_LOG_MAX = 3000;
const PAGE = 100;
const HIDDEN_BATCH_MS = 500;

export class SessionStore {
  /**
   * @param {import("./main.js").App} app
   * @param {string} id
   * @param {(changed?: Set<string>) => void} onChange
   */
  constructor(app, id, onChange) {
    this.app = app;
    this.id = id;
    this.onChange = onChange;
    /** @type {string | null} */
    this.older = null;
    this.ready = false;
    this.connection = "waiting";
    this.broken = "";
    /** @type {any} */
    this.explain = null;
    /** @type {any} */
    this.info = null;
    /** @type {string | null} */
    this.log = null;
    this.childAsks = [];
    /** @type {import("./fold.js").SessionState} */
    this.state = emptySession(id);
    /** @type {import("./fold.js").Envelope[]} */
    this.queue = [];
    /** @type {string[]} */
    this.askOrder = [];
    this.onLive = (event) => this.hear(event.detail);
  }

  async start() {
    this.stopped = false;
    try {
      const [session, page] = await Promise.all([get(sessionPath(this.id)), get(sessionPath(this.id, `/message?limit=${PAGE}`)).catch(onlyInFile)]);
      if (this.stopped) return;
      this.info = session.data;
      if (this.info.stored) this.showStored(page);
      else await this.begin(page);
    } catch (error) {
      if (this.stopped) return;
      this.connection = error.status === 404 ? "gone" : error.status === 403 ? "forbidden" : "waiting";
      this.ready = true;
      this.problem = error.message;
      this.retryAt = Date.now() + 2000;
      this.onChange();
      if (this.connection === "waiting" && error.status !== 401) setTimeout(() => this.stopped || this.start(), 2000);
      return;
    }
    this.app.live.addEventListener("event", this.onLive);
    this.app.live.put((await get(`/api/session/overview?ids=${encodeURIComponent(this.id)}`).catch(() => ({ data: [] }))).data);
    this.refreshExplain();
    this.refreshChildAsks();
  }

  async begin(page) {
    if ((page.seq ?? 0) > WHOLE_LOG_MAX) {
      this.state = fromMessages(this.id, page.data.toReversed(), page.seq);
      this.older = page.data.length === PAGE ? page.cursor.next : null;
      const [inputs, permissions, questions] = await Promise.all(["/input", "/permission", "/question"].map((rest) => get(sessionPath(this.id, rest)).catch(() => ({ data: [] }))));
      this.state.inbox = inputs.data;
      const own = (kind) => (request) => ({ kind, request });
      this.state.asks = [...permissions.data.map(own("permission")), ...questions.data.map(own("question"))].filter((ask) => ask.request.sessionID === this.id);
    } else {
      this.state = emptySession(this.id);
      this.older = null;
    }
    this.onChange(new Set(this.state.items.map((item) => item.id)));
    this.follow();
  }

  /** The events are in a file: the messages stand here, and nothing new comes. */
  showStored(page) {
    this.client?.stop();
    this.state = fromMessages(this.id, page.data.toReversed(), page.seq ?? 0);
    this.older = page.data.length === PAGE ? page.cursor.next : null;
    this.connection = "live";
    this.ready = true;
    this.onChange(new Set(this.state.items.map((item) => item.id)));
  }

  follow() {
    this.client?.stop();
    this.client = new StreamClient({
      url: () => sessionPath(this.id, `/stream?after=${this.state.seq}${this.log ? `&log=${encodeURIComponent(this.log)}` : ""}`),
      log: (log) => (this.log = log ?? this.log),
      events: (events) => this.take(events),
      state: (state, at) => this.setConnection(state, at),
      broken: (text) => (this.broken = text),
      startAgain: () => this.startAgain(),
    });
  }

  /** The cursor does not count any more: the log was restored, or the session is another one. All is read anew. */
  startAgain() {
    this.client?.stop();
    this.log = null;
    this.queue = [];
    this.renewals = (this.renewals ?? 0) + 1;
    setTimeout(() => this.stopped || this.start(), backoffMs(this.renewals, 0));
  }

  stop() {
    this.stopped = true;
    this.client?.stop();
    this.app.live.removeEventListener("event", this.onLive);
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
  }

  setConnection(state, at) {
    if (state === "open") {
      this.flush();
      this.state = reconnected(this.state);
    }
    this.connection = state === "open" ? this.connection : state;
    this.retryAt = at ?? 0;
    if (state === "live") {
      this.flush();
      this.ready = true;
      this.renewals = 0;
    }
    if (state === "gone") this.ready = true;
    this.onChange();
  }

  take(events) {
    for (const event of events) this.queue.push(event);
    if (this.frame || this.timer) return;
    if (document.hidden) this.timer = setTimeout(() => this.flush(), HIDDEN_BATCH_MS);
    else this.frame = requestAnimationFrame(() => this.flush());
  }

  flush() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    this.frame = this.timer = 0;
    if (!this.queue.length) return;
    const batch = this.queue;
    this.queue = [];
    const durable = batch.some((event) => event.durable);
    const asked = this.state.asks;
    const { state, changed } = fold(this.state, batch);
    this.state = state;
    // A card shows whether its call waits for a person.
    if (asked !== state.asks) for (const item of state.items.slice(-3)) changed.add(item.id);
    if (state.reload) {
      this.begin({ data: [], seq: 0 });
      return;
    }
    if (durable) this.explainSoon();
    this.onChange(changed);
  }

  /** Something happened somewhere: in this session, or in one of its children. */
  hear(event) {
    if (event.data.sessionID === this.id) {
      if (event.type === "session.status") this.explainSoon();
    } else if (event.type.startsWith("permission.v2.") || event.type.startsWith("question.v2.")) this.refreshChildAsks();
  }

  explainSoon() {
    if (this.explainTimer) return;
    this.explainTimer = setTimeout(() => {
      this.explainTimer = 0;
      this.refreshExplain();
    }, 250);
  }

  async refreshExplain() {
    const found = await get(sessionPath(this.id, "/explain")).catch(() => null);
    if (this.stopped || !found) return;
    this.explain = found.data;
    this.onChange();
  }

  /** What sub-agents ask shows in their parent too. */
  async refreshChildAsks() {
    clearTimeout(this.childTimer);
    this.childTimer = setTimeout(async () => {
      const [permissions, questions] = await Promise.all(["/permission", "/question"].map((rest) => get(sessionPath(this.id, rest)).catch(() => ({ data: [] }))));
      if (this.stopped) return;
      const of = (kind) => (request) => ({ kind, request });
      this.childAsks = [...permissions.data.map(of("permission")), ...questions.data.map(of("question"))].filter((ask) => ask.request.sessionID !== this.id);
      this.onChange();
    }, 150);
  }

  /** What waits, in the order in which it came: a key must never answer something that just moved up. */
  allAsks() {
    const place = (ask) => (this.askOrder.indexOf(ask.request.id) + 1 || Infinity);
    const asks = [...this.state.asks, ...this.childAsks].sort((a, b) => Math.sign(place(a) - place(b)) || 0);
    this.askOrder = asks.map((ask) => ask.request.id);
    return asks;
  }

  async loadOlder() {
    if (!this.older || this.loading) return;
    this.loading = true;
    this.onChange();
    try {
      const page = await get(sessionPath(this.id, `/message?limit=${PAGE}&cursor=${encodeURIComponent(this.older)}`));
      this.older = page.data.length === PAGE ? page.cursor.next : null;
      this.flush();
      this.state = prependMessages(this.state, page.data.toReversed());
    } catch {
      // The next scroll tries again.
    }
    this.loading = false;
    this.onChange();
  }

  /** Whether the session is not there, or not for this person. */
  isLost() {
    return Boolean(this.state.gone) || ["gone", "forbidden"].includes(this.connection);
  }

  /** Whether the events are in a file, so that nobody can write. */
  isStored() {
    return Boolean(this.info?.stored);
  }

  /** The log says it, if the page has all of it. */
  isArchived() {
    const whole = this.state.events[0]?.seq === 1 || this.state.profile.archived;
    return Boolean(whole ? this.state.profile.archived : this.info?.time.archived);
  }

  /** The state in a word. The log knows before the read models do. */
  status(session) {
    const known = session?.status ?? { state: "idle", code: "idle", asks: 0, pending: 0 };
    if (this.connection === "broken") return { ...known, state: "broken", code: "unreadable" };
    if (this.state.asks.length) return { ...known, state: "waiting", code: "ask" };
    if (this.state.openStep && ["idle", "queued", "failed", "interrupted"].includes(known.state) && this.explain?.state !== "idle") return { ...known, state: "running", code: "turn" };
    return known;
  }

  isWorking() {
    const explained = this.explain?.state;
    if (this.state.rest && this.state.rest.reason !== "parked" && !this.state.inbox.length) return false;
    return this.state.openStep !== null || explained === "running" || explained === "queued" || explained === "waiting";
  }
}

/** The read models were made again without the file of a stored session: there are no messages to show. */
function onlyInFile(error) {
  if (error.tag !== "SessionStoredError") throw error;
  return { data: [], seq: 0, cursor: {} };
}
