// Folds the events of one session into what the page shows. Pure: no clock, no network, no DOM.
//
// A state is never changed: `fold` returns a new one that shares what stayed the same. Every event
// is keyed by its message, so that an event which the state has already changes nothing.

/** @typedef {{id: string, type: string, data: any, durable?: {seq: number}, metadata?: any}} Envelope */
/** @typedef {{id: string, type: string, time: {created: number, completed?: number}, content?: any[], [field: string]: any}} Item */
/** @typedef {{kind: "permission" | "question", request: any, time?: number}} Ask */
/**
 * @typedef {object} SessionState
 * @property {string} id
 * @property {number} seq the last durable event that it shows
 * @property {Item[]} items
 * @property {Map<string, number>} places of items, by their ids
 * @property {any[]} inbox
 * @property {any[]} shells
 * @property {Ask[]} asks
 * @property {any[] | null} todos
 * @property {{seq: number, type: string, data: any, by?: string}[]} events the newest ones
 * @property {Map<string, {text: string, received: number, cut: boolean}>} blocks texts that are live
 * @property {Map<string, string>} outputs of calls that run
 * @property {any} profile
 * @property {string | null} openStep
 * @property {{reason: string, detail?: string, wakeAt?: number} | null} rest
 * @property {boolean} compacting
 * @property {string | null} gone
 * @property {boolean} reload
 */

const PREFIX = "session.next.";
const EVENTS_KEPT = 400;
const OUTPUT_KEPT = 64 * 1024;

/**
 * The state before the first event.
 * @param {string} id
 * @returns {SessionState}
 */
export function emptySession(id) {
  return {
    id,
    seq: 0,
    items: [],
    places: new Map(),
    inbox: [],
    shells: [],
    asks: [],
    todos: null,
    events: [],
    blocks: new Map(),
    outputs: new Map(),
    profile: {},
    openStep: null,
    rest: null,
    compacting: false,
    gone: null,
    reload: false,
  };
}

/**
 * The state after more events. `changed` holds the ids of the items that look different now.
 * @param {SessionState} state
 * @param {Envelope[]} envelopes
 * @returns {{state: SessionState, changed: Set<string>}}
 */
export function fold(state, envelopes) {
  const next = new Draft(state);
  for (const envelope of envelopes) next.take(envelope);
  return next.finish();
}

/** A state that begins with a page of messages, oldest first, which show every event up to `seq`. */
export function fromMessages(id, messages, seq) {
  const state = emptySession(id);
  const items = messages.map((message) => ({ ...message }));
  const places = new Map(items.map((item, place) => [item.id, place]));
  return { ...state, items, places, seq };
}

/** The state with older messages in front. */
export function prependMessages(state, messages) {
  const known = new Set(state.items.map((item) => item.id));
  const items = [...messages.filter((message) => !known.has(message.id)), ...state.items];
  return { ...state, items, places: new Map(items.map((item, place) => [item.id, place])) };
}

/** A new connection sends every open text from its beginning again. */
export function reconnected(state) {
  const blocks = new Map([...state.blocks].map(([key, block]) => [key, { ...block, received: 0 }]));
  return { ...state, blocks };
}

/** The text of an open block as far as it came; undefined without one. */
export function liveText(state, kind, messageID, blockID) {
  return state.blocks.get(`${kind} ${messageID} ${blockID}`)?.text;
}

class Draft {
  constructor(state) {
    this.state = { ...state };
    this.fresh = new Set();
    this.changed = new Set();
    this.copied = new Set();
  }

  finish() {
    return { state: this.state, changed: this.changed };
  }

  take(envelope) {
    const seq = envelope.durable?.seq;
    const type = envelope.type.startsWith(PREFIX) ? envelope.type.slice(PREFIX.length) : envelope.type;
    const handle = HANDLERS[type];
    if (seq === undefined) {
      if (handle) handle(this, envelope.data, envelope);
      return;
    }
    if (seq <= this.state.seq) return;
    this.state.seq = seq;
    this.own("events");
    this.state.events.push({ seq, type: envelope.type, data: envelope.data, by: envelope.metadata?.by });
    if (this.state.events.length > 2 * EVENTS_KEPT) this.state.events = this.state.events.slice(-EVENTS_KEPT);
    if (handle) handle(this, envelope.data, envelope);
  }

  /** Copy a collection of the state before its first change. */
  own(name) {
    if (this.copied.has(name)) return this.state[name];
    this.copied.add(name);
    const value = this.state[name];
    this.state[name] = value instanceof Map ? new Map(value) : Array.isArray(value) ? value.slice() : { ...value };
    return this.state[name];
  }

  /** The item with an id, copied; undefined if there is none. */
  item(id) {
    const place = this.state.places.get(id);
    if (place === undefined || this.state.items[place]?.id !== id) return undefined;
    this.changed.add(id);
    if (!this.fresh.has(id)) {
      this.own("items")[place] = { ...this.state.items[place] };
      this.fresh.add(id);
    }
    return this.state.items[place];
  }

  /** Add an item, or revise the one with its id. */
  put(item) {
    const known = this.item(item.id);
    if (known) return Object.assign(known, item);
    this.own("items").push(item);
    this.own("places").set(item.id, this.state.items.length - 1);
    this.fresh.add(item.id);
    this.changed.add(item.id);
    return item;
  }

  note(envelope, kind, text, detail) {
    this.put({ id: envelope.id, type: "note", kind, text, detail, time: { created: envelope.data.timestamp } });
  }

  /** A block of an assistant message, copied. */
  block(messageID, id, create) {
    const message = this.item(messageID);
    if (!message) return undefined;
    const content = (message.content = (message.content ?? []).slice());
    const place = content.findIndex((block) => block.id === id && (!create || block.type === create.type));
    if (place >= 0) return (content[place] = { ...content[place] });
    if (!create) return undefined;
    content.push(create);
    return create;
  }

  closeBlock(kind, messageID, id) {
    this.own("blocks").delete(`${kind} ${messageID} ${id}`);
  }

  settle(data, state) {
    const block = this.block(data.assistantMessageID, data.callID);
    if (!block) return;
    const before = block.state;
    block.state = { input: typeof before.input === "object" ? before.input : {}, structured: before.structured ?? {}, content: before.content ?? [], ...state };
    block.time = { ...block.time, completed: data.timestamp };
    this.own("outputs").delete(data.callID);
  }
}

function fragment(kind, name) {
  return (draft, data) => {
    const key = `${kind} ${data.assistantMessageID} ${data[name]}`;
    const blocks = draft.own("blocks");
    const block = { ...(blocks.get(key) ?? { text: "", received: 0, cut: false }) };
    blocks.set(key, block);
    if (block.text && !block.received) block.cut = data.index !== 0 && data.index !== undefined;
    if (block.cut) return;
    const begins = block.received;
    block.received += data.delta.length;
    if (block.received <= block.text.length) return;
    block.text += data.delta.slice(block.text.length - begins);
    if (kind === "tool") draft.block(data.assistantMessageID, data.callID);
    else draft.changed.add(data.assistantMessageID);
    draft.changed.add(data.assistantMessageID);
  };
}

function ended(kind, name) {
  return (draft, data) => {
    draft.closeBlock(kind, data.assistantMessageID, data[name]);
    const block = draft.block(data.assistantMessageID, data[name], { type: kind, id: data[name], text: "" });
    if (block) block.text = data.text;
    if (block && kind === "reasoning") block.time = { ...block.time, completed: data.timestamp };
  };
}

function ask(kind) {
  return (draft, data) => {
    const { timestamp, ...request } = data;
    const others = draft.own("asks").filter((other) => other.request.id !== request.id);
    draft.state.asks = [...others, { kind, request, time: timestamp }];
  };
}

function answered(what) {
  return (draft, data, envelope) => {
    const asked = draft.state.asks.find((other) => other.request.id === data.requestID);
    draft.state.asks = draft.own("asks").filter((other) => other.request.id !== data.requestID);
    const by = envelope.metadata?.by;
    const detail = data.message ?? data.answers?.map((answers) => answers.join(", ")).join("; ");
    const kind = what === "rejected" || data.reply === "reject" ? "declined" : "approved";
    const words = { once: "Approved once", always: "Approved always", reject: "Rejected" }[data.reply];
    const about = asked?.request.resources?.join(" ") ?? "";
    const text = `${words ?? (what === "rejected" ? "Question dismissed" : "Question answered")}${about ? `: ${about}` : ""}${by ? ` · ${by}` : ""}`;
    draft.note(envelope, kind, text, detail);
  };
}

const RESTS = {
  "retry-later": "It rests until the next attempt",
  "context-unavailable": "Its location cannot be observed: tried again",
  "turn-limit": "It rests: the limit of turns is reached",
  "repeated-calls": "It rests: the model repeats its calls",
  "over-budget": "It rests: the budget is used up",
  "budget-unknown": "It rests: nobody knows the price of its model",
  held: "It rests: a recovered turn waits for a resume",
};

const HANDLERS = {
  "session.created": (d, data) => {
    d.state.profile = { ...d.state.profile, title: data.title, location: data.location, agent: data.agent, model: data.model, parentID: data.parentID };
  },
  "session.described": (d, data) => {
    if (data.title !== undefined) d.own("profile").title = data.title;
  },
  "title.ended": (d, data) => {
    if (data.title !== undefined) d.own("profile").title = data.title;
  },
  "session.archived": (d, data, e) => {
    d.own("profile").archived = data.timestamp;
    d.note(e, "info", "Archived");
  },
  "session.unarchived": (d, _data, e) => {
    delete d.own("profile").archived;
    d.note(e, "info", "Taken out of the archive");
  },
  "session.purged": (d) => {
    d.state.gone = "purged";
  },
  "budget.set": (d, data) => {
    d.own("profile").budget = { cost: data.cost, tokens: data.tokens };
  },
  "agent.switched": (d, data) => {
    d.own("profile").agent = data.agent;
    d.put({ id: data.messageID, type: "agent-switched", agent: data.agent, time: { created: data.timestamp } });
  },
  "model.switched": (d, data) => {
    d.own("profile").model = data.model;
    d.put({ id: data.messageID, type: "model-switched", model: data.model, time: { created: data.timestamp } });
  },
  moved: (d, data, e) => {
    d.own("profile").location = data.location;
    d.note(e, "info", `Moved to ${data.location.directory}`);
  },
  "move.failed": (d, data, e) => d.note(e, "failed", "The move failed", data.reason),
  "prompt.admitted": (d, data) => {
    const others = d.own("inbox").filter((input) => input.id !== data.messageID);
    d.state.inbox = [...others, { id: data.messageID, prompt: data.prompt, delivery: data.delivery, timeCreated: data.timestamp }];
  },
  "input.edited": (d, data) => {
    d.state.inbox = d.own("inbox").map((input) =>
      input.id === data.messageID ? { ...input, prompt: data.prompt, delivery: data.delivery } : input);
  },
  "input.cancelled": (d, data) => {
    d.state.inbox = d.own("inbox").filter((input) => input.id !== data.messageID);
  },
  prompted: (d, data) => {
    d.state.inbox = d.own("inbox").filter((input) => input.id !== data.messageID);
    const { text, files, agents } = data.prompt;
    const type = data.prompt.synthetic ? "synthetic" : "user";
    d.put({ id: data.messageID, type, text, ...(files && { files }), ...(agents && { agents }), time: { created: data.timestamp } });
  },
  synthetic: (d, data) => {
    d.put({ id: data.messageID, type: "synthetic", text: data.text, time: { created: data.timestamp } });
  },
  "context.updated": (d, data) => {
    d.put({ id: data.messageID, type: "system", text: data.text, time: { created: data.timestamp } });
  },
  "shell.requested": (d, data) => {
    d.state.shells = [...d.own("shells"), { id: data.messageID, command: data.command }];
  },
  "shell.started": (d, data) => {
    d.state.shells = d.own("shells").filter((shell) => shell.id !== data.messageID);
    d.put({ id: data.messageID, type: "shell", callID: data.callID, command: data.command, output: "", time: { created: data.timestamp } });
  },
  "shell.ended": (d, data) => {
    const item = d.item(data.messageID);
    if (!item) return;
    Object.assign(item, { output: data.output, time: { ...item.time, completed: data.timestamp } });
    if (data.exit !== undefined) item.exit = data.exit;
    d.own("outputs").delete(data.callID);
  },
  "step.started": (d, data) => {
    d.state.openStep = data.assistantMessageID;
    d.state.rest = null;
    d.put({ id: data.assistantMessageID, type: "assistant", agent: data.agent, model: data.model, content: [], time: { created: data.timestamp } });
  },
  "step.ended": (d, data) => {
    d.state.openStep = null;
    const item = d.item(data.assistantMessageID);
    if (!item) return;
    Object.assign(item, { finish: data.finish, cost: data.cost, tokens: data.tokens, time: { ...item.time, completed: data.timestamp } });
    if (data.files?.length) item.files = data.files;
    if (data.output) item.output = data.output;
  },
  "step.failed": (d, data) => {
    d.state.openStep = null;
    const item = d.item(data.assistantMessageID);
    if (item) Object.assign(item, { finish: "error", error: data.error, time: { ...item.time, completed: data.timestamp } });
  },
  "text.started": (d, data) => d.block(data.assistantMessageID, data.textID, { type: "text", id: data.textID, text: "" }),
  "text.ended": ended("text", "textID"),
  "text.delta": fragment("text", "textID"),
  "reasoning.started": (d, data) =>
    d.block(data.assistantMessageID, data.reasoningID, { type: "reasoning", id: data.reasoningID, text: "", time: { created: data.timestamp } }),
  "reasoning.ended": ended("reasoning", "reasoningID"),
  "reasoning.delta": fragment("reasoning", "reasoningID"),
  "tool.input.started": (d, data) =>
    d.block(data.assistantMessageID, data.callID, { type: "tool", id: data.callID, name: data.name, state: { status: "pending", input: "" }, time: { created: data.timestamp } }),
  "tool.input.delta": fragment("tool", "callID"),
  "tool.input.ended": (d, data) => {
    d.closeBlock("tool", data.assistantMessageID, data.callID);
    const block = d.block(data.assistantMessageID, data.callID);
    if (block?.state.status === "pending") block.state = { status: "pending", input: data.text };
  },
  "tool.called": (d, data) => {
    const create = { type: "tool", id: data.callID, name: data.tool, state: { status: "pending", input: "" }, time: { created: data.timestamp } };
    const block = d.block(data.assistantMessageID, data.callID, create);
    if (!block) return;
    block.name = data.tool;
    block.state = { status: "running", input: data.input, structured: {}, content: [] };
    block.time = { ...block.time, ran: data.timestamp };
  },
  "tool.progress": (d, data) => {
    const block = d.block(data.assistantMessageID, data.callID);
    if (block) block.state = { ...block.state, structured: data.structured, content: data.content };
  },
  "tool.output.delta": (d, data) => {
    const outputs = d.own("outputs");
    outputs.set(data.callID, ((outputs.get(data.callID) ?? "") + data.delta).slice(-OUTPUT_KEPT));
    d.changed.add(data.assistantMessageID);
    d.item(data.assistantMessageID);
  },
  "tool.success": (d, data) => {
    const { structured, content, outputPaths, result } = data;
    d.settle(data, { status: "completed", structured, content, ...(outputPaths && { outputPaths }), ...(result !== undefined && { result }) });
  },
  "tool.failed": (d, data) => d.settle(data, { status: "error", error: data.error, ...(data.result !== undefined && { result: data.result }) }),
  "permission.v2.asked": ask("permission"),
  "permission.v2.replied": answered("replied"),
  "question.v2.asked": ask("question"),
  "question.v2.replied": answered("replied"),
  "question.v2.rejected": answered("rejected"),
  "todo.updated": (d, data) => {
    d.state.todos = data.todos;
  },
  retried: (d, data, e) => d.note(e, "retry", `Attempt ${data.attempt}`, data.error?.message),
  "execution.recovered": (d, data, e) => d.note(e, "recovered", `Recovered: ${data.action}`, data.detail),
  "execution.released": (d, data, e) => {
    d.state.openStep = null;
    d.state.rest = { reason: data.reason, detail: data.detail, wakeAt: data.wakeAt };
    if (data.reason in RESTS) d.note(e, "retry", RESTS[data.reason], data.detail);
  },
  "interrupt.requested": (d, data, e) => {
    const by = e.metadata?.by;
    d.note(e, "interrupt", `${data.declined ? `Stopped: ${data.declined}` : "Interrupted"}${by ? ` · ${by}` : ""}`);
  },
  "resume.requested": (d, _data, e) => d.note(e, "info", `Resumed${e.metadata?.by ? ` · ${e.metadata.by}` : ""}`),
  "compaction.requested": (d) => {
    d.state.compacting = true;
  },
  "compaction.started": (d) => {
    d.state.compacting = true;
  },
  "compaction.ended": (d, data) => {
    d.state.compacting = false;
    d.put({ id: data.messageID, type: "compaction", reason: data.reason, summary: data.text, recent: data.recent, time: { created: data.timestamp } });
  },
  "compaction.failed": (d, data, e) => {
    d.state.compacting = false;
    d.note(e, "failed", "No compaction", data.message);
  },
  "revert.staged": (d, data, e) => {
    d.own("profile").revert = data.revert;
    d.note(e, "info", "A revert is staged");
  },
  "revert.cleared": (d, _data, e) => {
    delete d.own("profile").revert;
    d.note(e, "info", "The revert was cleared");
  },
  "revert.committed": (d, data, e) => {
    delete d.own("profile").revert;
    const place = d.state.places.get(data.messageID);
    if (place === undefined) {
      d.state.reload = true;
      return;
    }
    d.state.items = d.own("items").slice(0, data.before ? place : place + 1);
    d.state.places = new Map(d.state.items.map((item, at) => [item.id, at]));
    d.note(e, "info", "Reverted: later messages are gone");
  },
};
