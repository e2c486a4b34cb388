// Numbers, times and texts in the words of people. Pure: the time of now is an argument.

export function formatCost(cost) {
  if (!cost) return "$0";
  if (cost < 0.01) return `$${cost.toFixed(4)}`;
  return cost < 100 ? `$${cost.toFixed(2)}` : `$${Math.round(cost).toLocaleString("en")}`;
}

export function formatCount(count) {
  if (count < 1000) return String(Math.round(count));
  if (count < 10_000) return `${(count / 1000).toFixed(1)}k`;
  if (count < 1_000_000) return `${Math.round(count / 1000)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

export function formatBytes(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 ** 2) return `${(bytes / 1024).toFixed(0)} KiB`;
  if (bytes < 1024 ** 3) return `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
  return `${(bytes / 1024 ** 3).toFixed(1)} GiB`;
}

export function formatDuration(ms) {
  if (ms < 0) return "0 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.round((ms % 3_600_000) / 60_000)} min`;
}

/** How long ago, or in how long. A clock that is a little wrong never says "in 3 s" for the past. */
export function formatAgo(time, now) {
  const ms = now - time;
  if (ms < -5000) return `in ${short(-ms)}`;
  if (ms < 10_000) return "now";
  return `${short(ms)} ago`;
}

function short(ms) {
  if (ms < 60_000) return `${Math.round(ms / 1000)} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 86_400_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

// To make a formatter costs more than to use it.
const CLOCK = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DATE = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "medium" });

export function formatClock(time) {
  return CLOCK.format(time);
}

export function formatDate(time) {
  return DATE.format(time);
}

export function totalTokens(tokens) {
  if (!tokens) return 0;
  return tokens.input + tokens.output + tokens.reasoning + tokens.cache.read + tokens.cache.write;
}

/** The tokens that a request read: they filled that much of the window. */
export function promptTokens(tokens) {
  return tokens.input + tokens.cache.read + tokens.cache.write;
}

/** The last two names of a directory: enough to know it by. */
export function shortPath(path) {
  const names = path.split("/").filter(Boolean);
  return names.length <= 2 ? path : `…/${names.slice(-2).join("/")}`;
}

/** One line of a text, cut. */
export function oneLine(text, length = 160) {
  const line = text.slice(0, length * 4).replace(/\s+/g, " ").trim();
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}

const STATE_WORDS = {
  running: "Running",
  queued: "Queued",
  retrying: "Retry",
  "over-budget": "Over budget",
  interrupted: "Interrupted",
  failed: "Failed",
  resting: "Resting",
  idle: "Idle",
  archived: "Archived",
  stored: "Stored",
  broken: "Broken",
};

/** The state of a session as a person says it. */
export function stateWords(status, now) {
  if (status.state === "waiting") return status.code === "tool" ? "Waiting for a tool" : "Waiting for you";
  if (status.state === "running" && status.code === "stopping") return "Stopping";
  if (status.state === "retrying" && status.wakeAt) return `Retry ${formatAgo(status.wakeAt, now)}`;
  return STATE_WORDS[status.state] ?? status.state;
}

/** The kind of colour of a state. */
export function stateTone(status) {
  if (status.state === "waiting") return status.code === "tool" ? "calm" : "you";
  if (status.state === "running") return "run";
  if (status.state === "queued") return "calm";
  if (status.state === "retrying") return "later";
  if (status.state === "failed" || status.state === "broken" || status.state === "over-budget") return "bad";
  if (status.state === "interrupted" || status.state === "resting") return "later";
  return "rest";
}
