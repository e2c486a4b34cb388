// What the page knows of all sessions: their states, what waits for people, and who looks at it.
// One live stream keeps it fresh. What the stream names is read again from the API.

import { get } from "./api.js";
import { StreamClient } from "./sse.js";

const READ_AGAIN_MS = 200;
const IDS_MAX = 100;
const ASK_EVENTS = new Set(["permission.v2.asked", "permission.v2.replied", "question.v2.asked", "question.v2.replied", "question.v2.rejected"]);

/** Fires "sessions", "asks", "counts", "connection" and "event". */
export class Live extends EventTarget {
  constructor() {
    super();
    this.sessions = new Map();
    this.asks = [];
    this.asksKnown = false;
    this.counts = { running: 0, waiting: 0, asks: 0, broken: 0 };
    this.connection = "waiting";
    this.dirty = new Set();
    this.skewMs = 0;
  }

  start() {
    this.stream = new StreamClient({
      url: () => "/api/event?fragments=false&status=true",
      events: (events) => this.take(events),
      state: (state) => this.setConnection(state),
      startAgain: () => {},
    });
    addEventListener("online", () => this.stream.hurry());
    document.addEventListener("visibilitychange", () => document.hidden || this.stream.hurry());
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
        for (const id of this.sessions.keys()) if (this.isShown(id)) this.dirty.add(id);
        this.fire("reconnected");
      } else if (event.data?.sessionID) {
        this.dirty.add(event.data.sessionID);
        if (ASK_EVENTS.has(event.type)) this.refreshAsks();
        this.fire("event", event);
      }
    }
    this.readSoon();
  }

  /** Whether some view shows the session now: only those are read again. */
  isShown(id) {
    return this.shownIds?.().has(id) ?? false;
  }

  readSoon() {
    if (this.timer || !this.dirty.size) return;
    this.timer = setTimeout(() => this.readDirty(), READ_AGAIN_MS);
  }

  async readDirty() {
    const ids = [...this.dirty].slice(0, IDS_MAX);
    for (const id of ids) this.dirty.delete(id);
    try {
      const page = await get(`/api/session/overview?ids=${ids.map(encodeURIComponent).join(",")}`);
      const found = new Set(page.data.map((session) => session.id));
      for (const id of ids) if (!found.has(id)) this.sessions.delete(id);
      this.put(page.data);
      await this.refreshCounts();
    } catch {
      for (const id of ids) this.dirty.add(id);
    }
    this.timer = 0;
    this.readSoon();
  }

  /** Note sessions that a view has read. */
  put(sessions) {
    for (const session of sessions) this.sessions.set(session.id, session);
    this.fire("sessions", sessions);
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
        this.asks = (await get("/api/ask")).data;
        this.asksKnown = true;
        this.fire("asks");
      } catch {
        // The stream tells again.
      }
    }, 60);
  }
}
