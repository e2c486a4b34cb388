// The elements of the transcript: one for each item of a session's state.

import { liveText } from "../fold.js";
import { h, icon } from "../dom.js";
import { formatClock, formatCost, formatCount, formatDate, formatDuration, totalTokens } from "../format.js";
import { GrowingProse, copyButton, plain, prose } from "../prose.js";
import { visibleText } from "../visible.js";
import { ToolCard, fileContent } from "./tool_card.js";
import { exact } from "./ask.js";

/** The element of an item. `context()` gives the state of this moment. */
export function renderItem(item, context) {
  const element = makeItem(item, context);
  element.classList.add("item");
  element.setAttribute("role", "listitem");
  return element;
}

/** Change an element in place. False: make it anew. */
export function updateItem(element, item) {
  return element.card ? (element.card.update(item), true) : false;
}

function makeItem(item, context) {
  switch (item.type) {
    case "user":
      return userItem(item, context);
    case "assistant":
      return new AssistantCard(item, context).element;
    case "synthetic":
      return folded("Note of a program", prose(item.text), item);
    case "system":
      return folded("Context changed", plain(item.text), item);
    case "compaction":
      return folded(`Compacted (${item.reason}): earlier messages became this summary`, [prose(item.summary), item.recent ? h("details", h("summary", icon("chevron"), "Kept word for word"), plain(item.recent)) : null], item);
    case "shell":
      return shellItem(item, context);
    case "agent-switched":
      return separator("info", `Agent: ${item.agent}`, item);
    case "model-switched":
      return separator("info", `Model: ${item.model.providerID}/${item.model.id}`, item);
    default:
      return separator(item.kind ?? "info", item.text ?? item.type, item);
  }
}

function clock(item) {
  return h("time.dim", { title: formatDate(item.time.created) }, formatClock(item.time.created));
}

function userItem(item, { sessionID }) {
  const files = (item.files ?? []).map((file) => fileContent(file, sessionID));
  return h("article.user", { "aria-label": "You" }, h("div.bubble", h("div.prose", { dir: "auto" }, plain(item.text)), files), h("div.under", copyButton(() => item.text), clock(item)));
}

function shellItem(item, { state }) {
  const output = item.output || state().outputs.get(item.callID) || "";
  const end = item.time.completed ? (item.exit === undefined ? "ended" : `exit ${item.exit}`) : "running";
  return h("article.shell", { "aria-label": "Command of a person" }, h("div.tool-line", icon("bolt"), h("code", exact(item.command)), h("span.dim", end)), output ? h("div.output", plain(output)) : null);
}

function folded(title, content, item) {
  return h("details.folded", h("summary", icon("chevron"), h("span", title), clock(item)), content);
}

function separator(kind, text, item) {
  return h("div.separator", { class: kind }, h("span", visibleText(text)), item.detail ? h("span.dim", visibleText(item.detail)) : null, clock(item));
}

class AssistantCard {
  constructor(item, context) {
    this.context = context;
    this.views = new Map();
    this.body = h("div.answer");
    this.foot = h("div.under");
    this.failure = h("div.failure", { role: "alert", hidden: true });
    this.element = h("article.assistant", { "aria-label": "Assistant" }, this.body, this.failure, this.foot);
    this.element.card = this;
    this.update(item);
  }

  update(item) {
    const state = this.context.state();
    const blocks = withLiveBlocks(item, state);
    for (const block of blocks) {
      const key = `${block.type} ${block.id}`;
      let view = this.views.get(key);
      if (!view) {
        view = this.makeView(block);
        this.views.set(key, view);
        this.body.append(view.element);
      }
      view.update(block, this.facts(block, item, state));
    }
    this.drawFoot(item, state);
  }

  makeView(block) {
    if (block.type === "tool") return new ToolCard(this.context.app, this.context.sessionID);
    return block.type === "reasoning" ? new ReasoningView() : new TextView();
  }

  facts(block, item, state) {
    const live = liveText(state, block.type === "tool" ? "tool" : block.type, item.id, block.id);
    const waits = block.type === "tool" && state.asks.some((ask) => (ask.request.source?.callID ?? ask.request.tool?.callID) === block.id);
    return { live, waits, output: block.type === "tool" ? state.outputs.get(block.id) : undefined, open: !item.time.completed };
  }

  drawFoot(item, state) {
    const working = state.openStep === item.id;
    this.element.classList.toggle("working", working && !this.body.childElementCount);
    // The steps before the last one of a turn have their calls to show, and nothing else.
    this.element.classList.toggle("between", item.finish === "tool-calls" && !item.error);
    const key = `${working} ${item.finish} ${item.time.completed} ${item.error?.message}`;
    if (key === this.footKey) return;
    this.footKey = key;
    this.failure.hidden = !item.error;
    if (item.error) this.failure.replaceChildren(icon("warning"), h("span", visibleText(item.error.message)));
    const facts = [`${item.agent} · ${item.model.id}`];
    if (item.tokens) facts.push(`${formatCount(totalTokens(item.tokens))} tok`, formatCost(item.cost));
    if (item.time.completed) facts.push(formatDuration(item.time.completed - item.time.created));
    if (item.finish && !["stop", "tool-calls", "error"].includes(item.finish)) facts.push(`ended: ${item.finish}`);
    const texts = (item.content ?? []).filter((block) => block.type === "text" && block.text);
    this.foot.replaceChildren(h("span.dim", facts.join(" · ")), clock(item), ...(texts.length && !working ? [copyButton(() => texts.map((block) => block.text).join("\n\n"))] : []));
  }
}

/** The blocks of a message. A live text may be here before the event that begins its block. */
function withLiveBlocks(item, state) {
  const blocks = item.content ?? [];
  if (item.time.completed) return blocks;
  const missing = [];
  for (const key of state.blocks.keys()) {
    const [type, messageID, ...rest] = key.split(" ");
    const id = rest.join(" ");
    if (messageID === item.id && type !== "tool" && !blocks.some((block) => block.id === id)) missing.push({ type, id, text: "" });
  }
  return missing.length ? [...blocks, ...missing] : blocks;
}

class TextView {
  constructor() {
    this.element = h("div.text");
  }

  update(block, { live, open }) {
    if (block.text) {
      if (this.final === block.text) return;
      this.final = block.text;
      if (!this.growing?.finish(block.text)) this.element.replaceChildren(prose(block.text));
      this.growing = null;
    } else if (live !== undefined && open) {
      if (!this.growing) {
        this.growing = new GrowingProse();
        this.element.replaceChildren(this.growing.element);
      }
      this.growing.update(live);
    } else if (!open && !this.final) this.growing?.element.classList.remove("live");
  }
}

class ReasoningView {
  constructor() {
    this.words = h("span", "Thinking…");
    this.body = h("div.reasoning-body");
    this.element = h("details.reasoning", { ontoggle: () => this.draw() }, h("summary", icon("chevron"), this.words), this.body);
  }

  update(block, { live, open }) {
    this.text = block.text || live || "";
    const took = block.time?.completed ? ` for ${formatDuration(block.time.completed - block.time.created)}` : "";
    this.words.textContent = block.text || !open ? `Thought${took}` : "Thinking…";
    this.element.classList.toggle("live", !block.text && open);
    this.draw();
  }

  draw() {
    if (!this.element.open || this.shown === this.text) return;
    this.shown = this.text;
    this.body.replaceChildren(prose(this.text));
  }
}
