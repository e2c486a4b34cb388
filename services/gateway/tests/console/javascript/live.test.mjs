// What the page knows of all sessions, over a small server that answers like the gateway does.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, beforeEach, test } from "node:test";

const { Live } = await import(`${process.env.CONSOLE}/live.js`);
const ID = "ses_1";
const rows = new Map();
let asked = [];
let server;

const session = (seq, state, more = {}) => ({ id: ID, seq, title: "One", location: { directory: "/a" }, status: { state, code: state, asks: 0, pending: 0 }, time: { created: 1, updated: seq }, ...more });
const admitted = { type: "session.next.prompt.admitted", data: { sessionID: ID }, durable: { seq: 3 } };
const claimed = { type: "session.status", data: { sessionID: ID, state: "running", seq: 4 } };

before(async () => {
  server = createServer((request, answer) => {
    const { pathname, searchParams } = new URL(request.url, "http://x");
    asked.push(pathname);
    const ids = searchParams.get("ids")?.split(",") ?? [];
    const data = pathname.endsWith("/count") ? { running: 0, waiting: 0, asks: 0, broken: 0 } : ids.map((id) => rows.get(id)).filter(Boolean);
    answer.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ data, cursor: {} }));
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const there = `http://127.0.0.1:${server.address().port}`;
  const { fetch } = globalThis;
  globalThis.fetch = (path, options) => fetch(there + path, options);
});
after(() => server.close());
beforeEach(() => {
  rows.clear();
  asked = [];
});

async function until(condition) {
  const end = Date.now() + 20_000;
  while (!condition()) {
    assert.ok(Date.now() < end, "it does not happen");
    await new Promise((wake) => setTimeout(wake, 20));
  }
}

test("a state that was read before the claim is read again until it shows the claim", async () => {
  const live = new Live();
  rows.set(ID, session(2, "idle"));
  live.take([admitted, claimed]);
  await until(() => live.sessions.get(ID)?.status.state === "idle");
  // The read models are far behind. No other event comes, because the model thinks for long.
  await new Promise((wake) => setTimeout(wake, 2500));
  rows.set(ID, session(4, "running"));

  await until(() => live.sessions.get(ID).status.state === "running");
});

test("what the read models show is read once, not again and again", async () => {
  const live = new Live();
  rows.set(ID, session(4, "running"));
  live.take([claimed]);
  await until(() => live.sessions.has(ID));
  await new Promise((wake) => setTimeout(wake, 2500));

  assert.equal(asked.filter((path) => path.endsWith("/overview")).length, 1);
});

test("a session that the read models do not have yet comes when they have it", async () => {
  const live = new Live();
  live.take([{ type: "session.created", data: { sessionID: ID }, durable: { seq: 1 } }]);
  await until(() => asked.length);
  rows.set(ID, session(1, "idle"));

  await until(() => live.sessions.has(ID));
});

test("a page that took long to come does not undo what was read after it", () => {
  const live = new Live();
  live.put([session(9, "running")]);
  live.put([session(5, "idle")]);
  assert.equal(live.sessions.get(ID).status.state, "running");

  // Another log may begin lower: what comes after a connection counts.
  live.refreshAsks = live.refreshCounts = () => {};
  live.take([{ type: "server.connected" }]);
  live.put([session(2, "idle")]);
  assert.equal(live.sessions.get(ID).status.state, "idle");
});

test("a session that looks as before is no news", () => {
  const live = new Live();
  const news = [];
  live.addEventListener("sessions", (event) => news.push(event.detail.map((one) => one.id)));
  live.put([session(1, "idle")]);
  live.put([session(1, "idle")]);
  live.put([session(1, "idle", { children: { cost: 1 } })]);
  assert.deepEqual(news, [[ID], [ID]]);
});
