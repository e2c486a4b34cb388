// The fold over streams that a real stack sent: whole, in pieces, cut and resumed anywhere.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

const { emptySession, fold, fromMessages, liveText, prependMessages, reconnected } = await import(`${process.env.CONSOLE}/fold.js`);

const folder = process.env.RECORDINGS;
const recordings = readdirSync(folder).filter((name) => name.endsWith(".json")).map((name) => ({ name, ...JSON.parse(readFileSync(`${folder}/${name}`)) }));

function deepFreeze(value) {
  if (value === null || typeof value !== "object" || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const inner of value instanceof Map ? value.values() : Object.values(value)) deepFreeze(inner);
  return value;
}

function foldAll(id, envelopes, size) {
  let state = deepFreeze(emptySession(id));
  for (let at = 0; at < envelopes.length; at += size) state = deepFreeze(fold(state, envelopes.slice(at, at + size)).state);
  return state;
}

/** What both the fold and the API know of a message. */
function comparable(items) {
  const skipped = new Set(["metadata", "snapshot", "provider", "providerMetadata", "sessionID", "files", "source", "output"]);
  const clean = (value) => {
    if (Array.isArray(value)) return value.map(clean);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).filter(([key, inner]) => !skipped.has(key) && inner !== undefined).map(([key, inner]) => [key, clean(inner)]).sort());
  };
  return items.filter((item) => item.type !== "note").map((item) => {
    const { time, ...rest } = clean(item);
    return { ...rest, created: time.created, content: rest.content?.map(({ time: _time, ...block }) => block) };
  });
}

test("there are recordings of real streams", () => {
  assert.ok(recordings.length >= 1);
});

for (const { name, session, stream, messages } of recordings) {
  const whole = foldAll(session, stream, stream.length);

  test(`${name}: the fold of the stream shows the messages of the API`, () => {
    assert.deepEqual(comparable(whole.items), comparable(messages));
  });

  test(`${name}: pieces of any size fold into the same state, and change no state before`, () => {
    for (const size of [1, 3, 17]) assert.deepEqual(foldAll(session, stream, size), whole);
  });

  test(`${name}: every event twice changes nothing`, () => {
    const durable = stream.filter((envelope) => envelope.durable);
    assert.deepEqual(fold(foldAll(session, durable, 5), durable).state.items, foldAll(session, durable, 5).items);
  });

  test(`${name}: a stream that is cut anywhere and resumed at its cursor ends the same`, () => {
    const step = Math.max(1, Math.floor(stream.length / 40));
    for (let cut = 1; cut < stream.length; cut += step) {
      let state = foldAll(session, stream.slice(0, cut), 50);
      const open = openTexts(stream.slice(0, cut));
      state = deepFreeze(reconnected(state));
      const replay = stream.slice(0, cut).filter((envelope) => envelope.durable?.seq > state.seq);
      // A new connection gets every open text from its beginning, as one fragment.
      state = deepFreeze(fold(state, [...replay, ...open]).state);
      for (const [key, text] of openTextMap(stream.slice(0, cut))) assert.equal(liveText(state, ...key.split(" ")), text, `text at ${cut}`);
      state = fold(state, stream.slice(cut)).state;
      assert.deepEqual(comparable(state.items), comparable(whole.items), `cut at ${cut}`);
    }
  });

  test(`${name}: a page of messages and the events after it make the same transcript`, () => {
    const middle = messages.slice(-3);
    let state = deepFreeze(fromMessages(session, middle, whole.seq));
    state = fold(state, stream).state;
    state = prependMessages(state, messages.slice(0, -3));
    assert.deepEqual(comparable(state.items), comparable(messages));
  });
}

const BLOCKS = { "session.next.text.delta": ["text", "textID"], "session.next.reasoning.delta": ["reasoning", "reasoningID"], "session.next.tool.input.delta": ["tool", "callID"] };
const ENDS = { "session.next.text.ended": ["text", "textID"], "session.next.reasoning.ended": ["reasoning", "reasoningID"], "session.next.tool.input.ended": ["tool", "callID"] };

function openTextMap(envelopes) {
  const open = new Map();
  for (const { type, data } of envelopes) {
    if (type in BLOCKS) {
      const [kind, name] = BLOCKS[type];
      const key = `${kind} ${data.assistantMessageID} ${data[name]}`;
      open.set(key, (open.get(key) ?? "") + data.delta);
    } else if (type in ENDS) {
      const [kind, name] = ENDS[type];
      open.delete(`${kind} ${data.assistantMessageID} ${data[name]}`);
    }
  }
  return open;
}

function openTexts(envelopes) {
  return [...openTextMap(envelopes)].map(([key, text]) => {
    const [kind, assistantMessageID, id] = key.split(" ");
    const [type, [, name]] = Object.entries(BLOCKS).find(([, [one]]) => one === kind);
    return { id: "evt_late", type, data: { assistantMessageID, [name]: id, delta: text, index: 0 } };
  });
}
