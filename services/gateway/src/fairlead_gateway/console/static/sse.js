// Server-sent events over fetch: a frame parser without I/O, and a client that resumes and backs off.

/** Splits the text of a stream into frames. Chunks may end anywhere. */
export class FrameParser {
  constructor() {
    this.rest = "";
    this.open = newFrame();
  }

  /** The frames that a chunk completes. */
  push(chunk) {
    const frames = [];
    const lines = (this.rest + chunk).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (this.open.data.length || this.open.comment) frames.push(finish(this.open));
        this.open = newFrame();
      } else {
        addLine(this.open, line);
      }
    }
    return frames;
  }
}

function newFrame() {
  return { data: [], event: null, id: null, comment: null };
}

function addLine(frame, line) {
  const colon = line.indexOf(":");
  if (colon === 0) {
    frame.comment = line.slice(1).trim();
    return;
  }
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (name === "data") frame.data.push(value);
  if (name === "event") frame.event = value;
  if (name === "id") frame.id = value;
}

function finish(frame) {
  return { ...frame, data: frame.data.join("\n") };
}

/** How long to wait before an attempt. Half is fixed and half is random, so that pages spread out. */
export function backoffMs(attempt, random) {
  const full = Math.min(15_000, 250 * 2 ** Math.min(attempt, 10));
  return Math.round(full / 2 + (full / 2) * random);
}

/** What to do after an answer that is no stream. */
export function afterRefusal(status) {
  if (status === 401) return "sign-in";
  if (status === 403) return "forbidden";
  if (status === 404) return "gone";
  if (status === 400 || status === 409 || status === 410) return "start-again";
  return "retry";
}

const SILENT_MS = 45_000;
const HIDDEN_MS = 30_000;

/**
 * Follows a stream for as long as it is not stopped. `handlers`:
 *   url()      the address, with the cursor of this moment
 *   events(e)  parsed events of a chunk
 *   state(s)   "open", "live" (caught up), "waiting", or an end: "sign-in", "forbidden", "gone"
 *   startAgain()  the cursor does not count any more
 *   log(id)    the incarnation of the log
 */
export class StreamClient {
  constructor(handlers) {
    this.handlers = handlers;
    this.attempt = 0;
    this.stopped = false;
    this.wake = null;
    this.paused = false;
    this.onVisibility = () => this.lookAtVisibility();
    document.addEventListener("visibilitychange", this.onVisibility);
    this.run();
  }

  /** A page that nobody looks at gives its connection back after a while: browsers have few of them. */
  lookAtVisibility() {
    clearTimeout(this.hiding);
    if (document.hidden) {
      this.hiding = setTimeout(() => {
        this.paused = true;
        this.controller?.abort();
      }, HIDDEN_MS);
    } else {
      this.paused = false;
      this.hurry();
    }
  }

  stop() {
    this.stopped = true;
    clearTimeout(this.hiding);
    document.removeEventListener("visibilitychange", this.onVisibility);
    this.controller?.abort();
    this.wake?.();
  }

  /** Try at once, as after sleep or when the network is back. */
  hurry() {
    this.attempt = 0;
    this.wake?.();
  }

  async run() {
    while (!this.stopped) {
      const outcome = await this.connect();
      if (this.stopped) return;
      if (outcome === "start-again") this.handlers.startAgain();
      else if (outcome !== "retry") {
        this.handlers.state(outcome);
        return;
      }
      const wait = this.paused ? 2 ** 31 - 1 : backoffMs(this.attempt++, Math.random());
      if (!this.paused) this.handlers.state("waiting", Date.now() + wait);
      await new Promise((resolve) => {
        this.wake = resolve;
        setTimeout(resolve, wait);
      });
    }
  }

  async connect() {
    this.controller = new AbortController();
    let silence;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => this.controller.abort(), SILENT_MS);
    };
    try {
      heard();
      const answer = await fetch(this.handlers.url(), { headers: { accept: "text/event-stream" }, signal: this.controller.signal, cache: "no-store" });
      if (!answer.ok) return afterRefusal(answer.status);
      this.handlers.log?.(answer.headers.get("fairlead-log"));
      this.handlers.state("open");
      return await this.read(answer.body.getReader(), heard);
    } catch {
      return "retry";
    } finally {
      clearTimeout(silence);
    }
  }

  async read(reader, heard) {
    const decoder = new TextDecoder();
    const parser = new FrameParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return "retry";
      heard();
      this.attempt = 0;
      const events = [];
      let live = false;
      let failed = null;
      for (const frame of parser.push(decoder.decode(value, { stream: true }))) {
        if (frame.comment === "caught-up") live = true;
        else if (frame.event?.endsWith("stream/failure")) failed = frame.data;
        else if (frame.data) events.push(JSON.parse(frame.data));
      }
      if (events.length) this.handlers.events(events);
      if (live) this.handlers.state("live");
      if (failed !== null) return failureOutcome(failed, this.handlers);
    }
  }
}

function failureOutcome(data, handlers) {
  const error = JSON.parse(data);
  if (error._tag === "UnauthorizedError") return "sign-in";
  if (error._tag === "CursorExpiredError" || error._tag === "SessionStoredError") return "start-again";
  if (error.kind === "Unreadable") {
    handlers.broken?.(error.message);
    return "broken";
  }
  return "retry";
}
