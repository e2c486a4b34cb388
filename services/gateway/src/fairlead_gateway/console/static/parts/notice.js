// What a session says about itself beside its transcript: that it is gone, closed, empty, or waits for a person.

import { h } from "../dom.js";

/** Why nobody can write to a session; null where they can. */
export function closedReason(app, store) {
  if (store.isLost()) return "The session is not there.";
  if (store.connection === "broken") return "The session is broken: nothing can be written to its log.";
  if (store.isStored()) return storedWords(store);
  if (store.isArchived()) return "The session is archived. Take it out of the archive to go on.";
  return app.may("session:write") ? null : "You may read this session. The scope session:write lets you write.";
}

/** A state that a person can end: its tone, its words, and the name of what ends it; null for others. */
export function noticeOf(store, status, working) {
  const { state } = store;
  if (store.isLost()) return null;
  if (store.isStored()) return { tone: "calm", words: storedWords(store) };
  if (state.compacting) return { tone: "calm", words: "Compacting: earlier messages become a summary…" };
  if (store.isArchived()) return { tone: "calm", words: "The session is archived.", act: "unarchive" };
  if (working) return null;
  switch (status.state) {
    case "failed":
      return { tone: "bad", words: "The last turn failed. A message or another attempt goes on.", act: "resume" };
    case "retrying":
      return { tone: "later", words: `The provider could not answer${state.rest?.detail ? ` (${state.rest.detail})` : ""}.`, act: "resume" };
    case "over-budget":
      return { tone: "bad", words: "The budget is used up. The session goes on with a higher one.", act: "budget" };
    case "interrupted":
      return { tone: "later", words: "Interrupted. A message or a resume goes on.", act: "resume" };
    case "resting":
      return { tone: "later", words: `It rests${state.rest?.detail ? `: ${state.rest.detail}` : ""}. A message or a resume goes on.`, act: "resume" };
    default:
      return null;
  }
}

function storedWords(store) {
  return `The session is stored in the file ${store.info.stored.name}. An operator brings it back: fairlead cold restore ${store.id} --from DIR`;
}

/** What stands where a transcript would be. */
export function welcome(store) {
  if (store.isLost()) {
    const mine = store.connection === "forbidden";
    return [h("h2", mine ? "You may not read this session" : "This session is gone"), h("p", mine ? "The scope session:read is missing. Ask an administrator for it." : "Somebody deleted it, or it belongs to another tenant."), h("a.button", { href: "/" }, "All sessions")];
  }
  if (!store.ready) return [h("p.loading", { role: "status" }, "Loading…")];
  return [h("h2", "Nothing was said yet"), h("p", "Write below what the agent should do. Everything it does stands here, and stays.")];
}
