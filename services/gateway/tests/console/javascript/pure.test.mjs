// The parts of the console that need no browser: frames, back-off, markdown, marks, patches, rows, ranges.

import assert from "node:assert/strict";
import { test } from "node:test";

const load = (name) => import(`${process.env.CONSOLE}/${name}`);
const { FrameParser, afterRefusal, backoffMs } = await load("sse.js");
const { namesHost, parseInline, parseMarkdown, safeTarget, stableEnd } = await load("markdown.js");
const { visibleText } = await load("visible.js");
const { parsePatch } = await load("diff.js");
const { sessionRows } = await load("session_rows.js");
const { offsetsOf, visibleRange } = await load("virtual.js");
const { formatAgo, formatCost, formatCount, formatDuration, stateWords } = await load("format.js");
const { emptySession, fold } = await load("fold.js");

test("frames are found wherever the chunks are cut", () => {
  const text = ': caught-up\n\nid: 7\ndata: {"a":1}\n\nevent: x\r\ndata: one\r\ndata: two\r\n\r\n: heartbeat\n\n';
  const whole = new FrameParser().push(text);
  assert.deepEqual(whole.map((frame) => [frame.comment, frame.id, frame.event, frame.data]), [["caught-up", null, null, ""], [null, "7", null, '{"a":1}'], [null, null, "x", "one\ntwo"], ["heartbeat", null, null, ""]]);
  for (let size = 1; size < 9; size += 1) {
    const parser = new FrameParser();
    const frames = [];
    for (let at = 0; at < text.length; at += size) frames.push(...parser.push(text.slice(at, at + size)));
    assert.deepEqual(frames, whole, `chunks of ${size}`);
  }
});

test("the pauses grow, stay bounded and differ", () => {
  assert.ok(backoffMs(0, 0) >= 100);
  assert.ok(backoffMs(3, 0) > backoffMs(1, 0));
  assert.equal(backoffMs(50, 1), 15_000);
  assert.notEqual(backoffMs(4, 0), backoffMs(4, 1));
});

test("a refusal says what to do next", () => {
  assert.deepEqual([401, 403, 404, 400, 409, 410, 503].map(afterRefusal), ["sign-in", "forbidden", "gone", "start-again", "start-again", "start-again", "retry"]);
});

test("markdown becomes a tree of plain values", () => {
  const tree = parseMarkdown("# Title\n\nSome **bold** and `code`.\n\n- one\n- two\n  - inner\n\n1. first\n\n> quoted\n\n```js\nlet a = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---");
  assert.deepEqual(tree.map((block) => block.type), ["heading", "paragraph", "list", "list", "quote", "code", "table", "rule"]);
  assert.equal(tree[2].items.length, 2);
  assert.equal(tree[2].items[1][1].type, "list");
  assert.equal(tree[5].text, "let a = 1;");
  assert.deepEqual(tree[6].rows[0].map((cell) => cell[0].text), ["1", "2"]);
});

test("only links that a page may open are links, and HTML is text", () => {
  for (const bad of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "//evil.example", "/api/session"]) assert.equal(safeTarget(bad), null, bad);
  const [text] = parseInline("[click](javascript:alert(1))");
  assert.equal(text.type, "text");
  const [link] = parseInline("[bank.example](https://evil.example/x)");
  assert.deepEqual([link.type, link.host], ["link", "evil.example"]);
  const [script] = parseMarkdown("<script>alert(1)</script><img src=x onerror=alert(1)>");
  assert.deepEqual(script, { type: "paragraph", inline: [{ type: "text", text: "<script>alert(1)</script><img src=x onerror=alert(1)>" }] });
  const [image] = parseInline("![pixel](https://evil.example/track.gif)");
  assert.equal(image.type, "link");
});

test("a link hides its host only behind its own name", () => {
  assert.ok(namesHost("evil.example", "evil.example"));
  assert.ok(namesHost("https://evil.example/a/path", "evil.example"));
  for (const words of ["bank.example", "https://bank.example/", "https://k.example@bank.example/", "see k.example", ""]) assert.equal(namesHost(words, "k.example"), false, words);
});

test("broken and hostile markdown ends, and quickly", () => {
  const started = performance.now();
  for (const text of ["```\nnever closed", "**never closed", "[".repeat(50_000), "*".repeat(50_000), "> ".repeat(5000), `${"- ".repeat(3000)}x`, "a".repeat(1_000_000), "|".repeat(20_000), `${"(".repeat(9000)}[a](`, "`".repeat(30_001)]) parseMarkdown(text);
  assert.ok(performance.now() - started < 5000);
});

test("the stable part of a growing text is never in the middle of a block", () => {
  const text = "One.\n\nTwo **b**.\n\n```js\na\n\nb\n```\n\nThree";
  let stable = 0;
  for (let length = 1; length <= text.length; length += 1) {
    const end = stableEnd(text.slice(0, length), stable);
    assert.ok(end >= stable);
    stable = end;
  }
  assert.deepEqual([...parseMarkdown(text.slice(0, stable)), ...parseMarkdown(text.slice(stable))], parseMarkdown(text));
});

test("nothing in a command can hide", () => {
  assert.equal(visibleText("rm \u202e-rf\u200b /\u0007"), "rm ⟨U+202E⟩-rf⟨U+200B⟩ /⟨U+0007⟩");
  assert.equal(visibleText("plain\ttext\nline"), "plain\ttext\nline");
  assert.equal(visibleText("a\rb"), "a⟨␍⟩b");
});

test("a patch has the numbers of its lines", () => {
  const rows = parsePatch("--- a\n+++ b\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n");
  assert.deepEqual(rows.map((row) => [row.kind, row.old, row.new]), [["hunk", undefined, undefined], ["same", 1, 1], ["removed", 2, undefined], ["added", undefined, 2], ["same", 3, 3]]);
  assert.deepEqual(parsePatch("not a patch"), []);
});

const session = (id, state, fields = {}) => ({ id, projectID: "p", title: id, location: { directory: "/a" }, time: { created: 1, updated: 1 }, status: { state, code: state, asks: 0, pending: 0 }, ...fields });

test("what waits for a person stands on top, and filters hold", () => {
  const all = [session("idle", "idle"), session("run", "running"), session("you", "waiting"), session("old", "failed", { location: { directory: "/b" } })];
  const rows = sessionRows(all, { state: "", project: "", text: "" }, false);
  assert.deepEqual(rows.map((row) => row.head ?? row.key), ["Active", "you", "run", "Earlier", "idle", "old"]);
  const waiting = [{ ...all[0], id: "tool", status: { state: "waiting", code: "tool" } }, ...all];
  assert.deepEqual(sessionRows(waiting, { state: "", project: "", text: "" }, false).slice(1, 4).map((row) => row.key), ["you", "run", "tool"]);
  assert.deepEqual(sessionRows(all, { state: "failed", project: "", text: "" }, false).map((row) => row.key), ["head rest", "old"]);
  assert.deepEqual(sessionRows(all, { state: "", project: "", text: "/b ol" }, false).map((row) => row.key), ["head rest", "old"]);
  assert.deepEqual(sessionRows(all, { state: "", project: "", text: "" }, true).filter((row) => row.head).map((row) => row.head), ["Active", "/a", "/b"]);
});

test("a list makes elements only for what is in sight", () => {
  const offsets = offsetsOf(Array.from({ length: 10_000 }, () => 50));
  assert.deepEqual(visibleRange(offsets, -900, 500), { first: 0, last: 10, above: 0, below: 499_500 });
  const middle = visibleRange(offsets, 250_010, 250_500);
  assert.deepEqual(middle, { first: 5000, last: 5010, above: 250_000, below: 249_500 });
  assert.deepEqual(visibleRange(offsetsOf([]), 0, 500), { first: 0, last: 0, above: 0, below: 0 });
  const end = visibleRange(offsets, 600_000, 700_000);
  assert.equal(end.above + end.below, 500_000);
});

test("times, sums and states are words, also with a wrong clock", () => {
  assert.deepEqual([formatCost(0), formatCost(0.0012), formatCost(3.456), formatCount(12_345), formatCount(3_400_000), formatDuration(950), formatDuration(61_000)], ["$0", "$0.0012", "$3.46", "12k", "3.4M", "950 ms", "1 min 1 s"]);
  assert.equal(formatAgo(1000, 2000), "now");
  assert.equal(formatAgo(4000, 1000), "now");
  assert.equal(formatAgo(100_000, 0), "in 2 min");
  assert.equal(stateWords({ state: "stored", code: "stored" }, 0), "Stored");
  assert.equal(stateWords({ state: "retrying", code: "retry-later", wakeAt: 60_000 }, 0), "Retry in 1 min");
});

test("ten thousand fragments cost little, and leave one text", () => {
  const start = { id: "evt_1", type: "session.next.step.started", durable: { seq: 1 }, data: { assistantMessageID: "msg_a", agent: "a", model: { id: "m" }, timestamp: 1 } };
  let { state } = fold(emptySession("ses_1"), [start]);
  const began = performance.now();
  for (let at = 0; at < 10_000; at += 10) {
    const batch = Array.from({ length: 10 }, (_, index) => ({ id: "e", type: "session.next.text.delta", data: { assistantMessageID: "msg_a", textID: "t", delta: "word ", index: at + index } }));
    ({ state } = fold(state, batch));
  }
  assert.equal(state.blocks.get("text msg_a t").text.length, 50_000);
  assert.equal(state.items.length, 1);
  assert.ok(performance.now() - began < 2000);
});

test("an event that nobody knows changes nothing but the log", () => {
  const { state } = fold(emptySession("ses_1"), [{ id: "evt_1", type: "session.next.of.tomorrow", durable: { seq: 1 }, data: { timestamp: 1 } }, { id: "evt_2", type: "other", data: {} }]);
  assert.deepEqual([state.seq, state.items.length, state.events.length], [1, 0, 1]);
});
