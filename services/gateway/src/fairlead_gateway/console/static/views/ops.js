// Operations: services, shards and their lag, queues, dead letters, broken sessions.

import { get, now } from "../api.js";
import { fill, h } from "../dom.js";
import { formatAgo, formatBytes, formatCount, formatDate } from "../format.js";
import { plain } from "../prose.js";
import { visibleText } from "../visible.js";

const READ_AGAIN_MS = 3000;

class OpsView extends HTMLElement {
  connectedCallback() {
    this.body = h("div.scroller.padded", { tabindex: "0", role: "region", "aria-label": "Operations" });
    this.note = h("p.dim", { role: "status" }, "Reading…");
    fill(this, h("div.page-head", h("h1", "Operations"), this.note), this.body);
    this.read();
  }

  disconnectedCallback() {
    clearTimeout(this.timer);
  }

  async read() {
    try {
      const { data } = await get("/api/operations");
      this.note.textContent = `Version ${data.version} · log level ${data.logLevel ?? "?"} · as of ${new Date().toLocaleTimeString()}`;
      this.draw(data);
    } catch (error) {
      this.note.textContent = error.status === 403 ? "You may not look here: the scope ops is missing." : error.message;
    }
    if (this.isConnected) this.timer = setTimeout(() => this.read(), READ_AGAIN_MS);
  }

  draw(data) {
    const open = new Set([...this.body.querySelectorAll("details[open]")].map((details) => details.dataset.key));
    const lag = data.shards.reduce((sum, shard) => sum + Math.max(0, shard.head - shard.projected), 0);
    fill(this.body,
      h("dl.totals.big", tile("services", data.services.length), tile("commits behind", lag, lag > 100 ? "bad" : ""), tile("wakes queued", queue(data, "WAKES")), tile("tool calls queued", queue(data, "TOOLS")), tile("dead letters", queue(data, "DEAD"), queue(data, "DEAD") ? "bad" : ""), tile("broken sessions", data.broken.length, data.broken.length ? "bad" : "")),
      h("section", h("h2", "Services"), data.services.length ? table(["Service", "Instance", "Version", "Started", "Requests"], data.services.map((one) => [one.name, h("code", one.id), one.version, one.started ? formatAgo(one.started, now()) : "", one.requests ? formatCount(one.requests) : ""])) : h("p.dim", "No service answers.")),
      h("section", h("h2", "Log"), h("div.shards", data.shards.map(shardTile))),
      h("section", h("h2", "Streams and queues"), table(["Stream", "What it holds", "Messages", "Size", "Consumers"], data.streams.map((one) => [h("code", one.name), one.description, formatCount(one.messages), formatBytes(one.bytes), String(one.consumers)]))),
      h("section", h("h2", "Dead letters"), data.deadLetters.length ? data.deadLetters.map((letter) => h("details.part", { "data-key": letter.seq, open: open.has(String(letter.seq)) }, h("summary", h("time.dim", { title: formatDate(letter.time) }, formatAgo(letter.time, now())), h("code", visibleText(letter.subject)), h("span.bad-text.grow", visibleText(letter.reason.slice(0, 200)))), plain(visibleText(letter.payload)))) : h("p.dim", "None: every message could be handled.")),
      h("section", h("h2", "Broken sessions"), data.broken.length ? table(["Session", "When", "Why"], data.broken.map((one) => [h("a", { href: `/s/${one.sessionID}` }, h("code", one.sessionID)), formatAgo(one.time, now()), visibleText(one.reason.slice(0, 300))])) : h("p.dim", "None.")),
      h("section", h("h2", "Recent recoveries"), data.recoveries.length ? table(["When", "Session", "What"], data.recoveries.map((one) => [formatAgo(one.time, now()), h("a", { href: `/s/${one.sessionID}` }, h("code", one.sessionID)), `${one.action}: ${visibleText(one.detail.slice(0, 200))}`])) : h("p.dim", "None: no runner died in the middle of a turn.")),
      h("p.dim.small", data.metricsUrl ? ["Metrics: ", h("a", { href: data.metricsUrl, target: "_blank", rel: "noopener noreferrer" }, h("bdi", data.metricsUrl))] : ["Metrics for Prometheus are on the operations port of each service, at ", h("code", "/metrics"), "."]));
  }
}

function queue(data, name) {
  return data.streams.find((stream) => stream.name === name)?.messages ?? 0;
}

function tile(words, value, tone = "") {
  return h("div", { class: tone }, h("dt", words), h("dd", formatCount(value)));
}

function shardTile(shard) {
  const behind = Math.max(0, shard.head - shard.projected);
  return h("div.shard", { class: behind > 100 ? "bad" : "" }, h("strong", `Shard ${shard.shard}`), h("span", `${formatCount(shard.messages)} commits`), h("span", formatBytes(shard.bytes)), h("span", { class: behind ? "bad-text" : "dim" }, behind ? `${formatCount(behind)} behind` : "up to date"));
}

function table(heads, rows) {
  return h("div.table", h("table", h("thead", h("tr", heads.map((head) => h("th", { scope: "col" }, head)))), h("tbody", rows.map((row) => h("tr", row.map((cell) => h("td", cell)))))));
}

customElements.define("fl-ops", OpsView);
