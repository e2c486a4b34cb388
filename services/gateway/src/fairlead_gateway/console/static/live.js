// What the page knows of all sessions: their states, what waits for people, and who looks at it.
// One live stream keeps it fresh. What the stream names is read again from the API.

import { get } from "./api.js";
import { StreamClient } from "./sse.js";

const READ_AGAIN_MS = 200;
/** The read models may be behind the stream: a session is read until they show what the stream told. */
const LOOK_AGAIN_MS = 5000;
const LOOKS_MAX = 60;
const ACTIVE_LOOK_MS = 10_000;
const AFTER_FAILURE_MS = 3000;
const IDS_MAX = 100;
const ASK_EVENTS = new Set(["permission.v2.asked", "permission.v2.replied", "question.v2.asked", "question.v2.replied", "question.v2.rejected"]);

const ACTIVE = new Set(["running", "queued", "waiting", "retrying"]);

/** Fires "sessions", "asks", "counts", "connection" and "event". */
export class Live extends EventTarget {
  constructor() {
    super();
    this.sessions = new Map();
    this.asks = [];
    this.asksKnown = false;
    this.asksProblem = "";
    this.counts = { running: 0, waiting: 0, asks: 0, broken: 0 };
    this.connection = "waiting";
    this.dirty = new Set();
    /** How far the stream told of a session, until a read has shown that much. */
    this.heard = new Map();
    this.told = new Map();
    /** The sessions that a view shows now: those are read again. @type {(() => Iterable<string>) | undefined} */
    this.shownIds = undefined;
  }

  start() {
    this.stream = new StreamClient({
      url: () => "/api/event?fragments=false&status=true",
      events: (events) => this.take(events),
      state: (state) => this.setConnection(state),
      startAgain: () => {},
    });
    addEventListener("online", () => this.stream.hurry());
    setInterval(() => this.lookAtActive(), ACTIVE_LOOK_MS);
  }

  stop() {
    this.stream?.stop();
  }

  setConnection(state) {
    if (state === "live" || state === "open") state = "live";
    if (state === this.connection) return;
    this.connection = state;
    this.fire("connection");
  }

  fire(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  take(events) {
    for (const event of events) {
      if (event.type === "server.connected") {
        // Whatever happened while nobody listened is read again.
        this.refreshAsks();
        this.refreshCounts();
        for (const id of this.shownIds?.() ?? []) if (this.sessions.has(id)) this.dirty.add(id);
        // Another log may have lower numbers.
        for (const session of this.sessions.values()) session.seq = 0;
        this.fire("reconnected");
      } else if (event.data?.sessionID) {
        this.hear(event);
        if (ASK_EVENTS.has(event.type)) this.hearOfAsk(event);
        this.fire("event", event);
      }
    }
    this.readSoon();
  }

  hear({ type, data, durable }) {
    const id = data.sessionID;
    this.dirty.add(id);
    if (type === "session.purged") return;
    this.heard.set(id, { seq: Math.max(durable?.seq ?? data.seq ?? 0, this.heard.get(id)?.seq ?? 0), looks: 0 });
  }

  /** The stream knows of an ask before the read models do. */
  hearOfAsk({ type, data }) {
    if (!type.endsWith(".asked")) {
      this.told.set(data.requestID, null);
      this.asks = this.asks.filter((ask) => ask.request.id !== data.requestID);
    } else {
      const { timestamp, ...request } = data;
      const session = this.sessions.get(data.sessionID);
      const ask = { kind: type.startsWith("question") ? "question" : "permission", request, askedAt: timestamp, title: session?.title ?? "", directory: session?.location.directory ?? "", agent: session?.agent };
      this.told.set(request.id, ask);
      if (ask.title) this.asks = [ask, ...this.asks.filter((other) => other.request.id !== request.id)];
    }
    this.fire("asks");
    this.refreshAsks();
  }

  /** What was read, corrected by what the stream has told since. */
  mergeAsks(read) {
    const known = new Set(read.map((ask) => ask.request.id));
    for (const [id, ask] of this.told) if (known.has(id) === (ask !== null)) this.told.delete(id);
    const missing = [...this.told.values()].filter((ask) => ask?.title);
    return [...missing, ...read.filter((ask) => this.told.get(ask.request.id) !== null)];
  }

  lookAtActive() {
    // Nobody looks, and the stream may rest: the title still says what waits.
    if (document.hidden) this.refreshCounts();
    for (const id of this.shownIds?.() ?? []) if (ACTIVE.has(this.sessions.get(id)?.status.state)) this.dirty.add(id);
    this.readSoon();
  }

  readSoon(pause = READ_AGAIN_MS) {
    if (this.timer || !this.dirty.size) return;
    this.timer = setTimeout(() => this.readDirty(), pause);
  }

  async readDirty() {
    const ids = [...this.dirty].slice(0, IDS_MAX);
    let pause = READ_AGAIN_MS;
    for (const id of ids) this.dirty.delete(id);
    try {
      const page = await get(`/api/session/overview?ids=${ids.map(encodeURIComponent).join(",")}`);
      const found = new Map(page.data.map((session) => [session.id, session]));
      for (const id of ids) {
        if (!found.has(id) && this.sessions.delete(id)) this.fire("sessions", []);
        this.compare(id, found.get(id));
      }
      this.put(page.data);
      await this.refreshCounts();
    } catch {
      for (const id of ids) this.dirty.add(id);
      pause = AFTER_FAILURE_MS;
    }
    this.timer = 0;
    this.readSoon(pause);
  }

  /** Read a session again later, if the read models do not show yet what the stream told of it. */
  compare(id, session) {
    const heard = this.heard.get(id);
    if (!heard) return;
    heard.looks += 1;
    if ((session ? session.seq ?? Infinity : 0) >= heard.seq || heard.looks > LOOKS_MAX) this.heard.delete(id);
    else setTimeout(() => {
      this.dirty.add(id);
      this.readSoon();
    }, Math.min(LOOK_AGAIN_MS, READ_AGAIN_MS * 2 ** heard.looks));
  }

  /** Note sessions that a view has read. An answer that took long does not undo what came after it. */
  put(sessions) {
    const changed = sessions.filter((session) => {
      const known = this.sessions.get(session.id);
      // The seqs of a session begin again when it is stored.
      const older = session.seq < known?.seq && Boolean(session.stored) === Boolean(known.stored);
      return !known || (!older && JSON.stringify(known) !== JSON.stringify(session));
    });
    for (const session of changed) this.sessions.set(session.id, session);
    if (changed.length) this.fire("sessions", changed);
  }

  async refreshCounts() {
    const { data } = await get("/api/session/count").catch(() => ({ data: this.counts }));
    this.counts = data;
    this.fire("counts");
  }

  refreshAsks() {
    if (this.asksTimer) return;
    this.asksTimer = setTimeout(async () => {
      this.asksTimer = 0;
      try {
        this.asks = this.mergeAsks((await get("/api/ask")).data);
        this.asksKnown = true;
        this.asksProblem = "";
        this.fire("asks");
        if (this.told.size) setTimeout(() => this.refreshAsks(), READ_AGAIN_MS);
      } catch (error) {
        this.asksProblem = error.message;
        this.fire("asks");
        setTimeout(() => this.refreshAsks(), AFTER_FAILURE_MS);
      }
    }, 60);
  }
}
