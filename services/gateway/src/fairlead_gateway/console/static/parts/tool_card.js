// One tool call: a line that says what it does, and on demand its input, output, changes and images.

import { get, readObjectUrl, readText, sessionPath } from "../api.js";
import { attempt } from "../dialog.js";
import { button, fill, h, icon } from "../dom.js";
import { formatDuration, oneLine } from "../format.js";
import { codeBlock, plain } from "../prose.js";
import { visibleText } from "../visible.js";
import { diffView, exact } from "./ask.js";

const MANAGED = /fairlead-output:\/(out_[A-Za-z0-9_-]{1,120})/g;
const IMAGES = /^image\/(png|jpeg|gif|webp)$/;
const WORDS = { pending: "preparing", running: "running", completed: "done", error: "failed" };
const TONES = { pending: "calm", running: "run", completed: "good", error: "bad" };
const STEPS_OPEN = new Set(["edit", "write", "apply_patch"]);

/** What a call is about, in one line. */
export function callSummary(block, live) {
  const input = typeof block.state.input === "object" ? block.state.input : null;
  if (!input) return oneLine(live ?? block.state.input ?? "");
  const first = input.command ?? input.path ?? input.filePath ?? input.pattern ?? input.url ?? input.query ?? input.description ?? input.name;
  if (typeof first === "string") return oneLine(first);
  if (Array.isArray(input.todos)) return `${input.todos.length} tasks, ${input.todos.filter((todo) => todo.status === "completed").length} done`;
  if (Array.isArray(input.questions)) return oneLine(input.questions.map((one) => one.question).join(" "));
  const json = JSON.stringify(input);
  return json === "{}" ? "" : oneLine(json);
}

export class ToolCard {
  constructor(app, sessionID) {
    this.app = app;
    this.sessionID = sessionID;
    this.opened = null;
    this.live = this.output = this.waits = undefined;
    /** @type {any} */
    this.block = null;
    this.summary = h("summary");
    this.body = h("div.tool-body");
    this.element = h("details.tool", { ontoggle: () => this.drawBody() }, this.summary, this.body);
  }

  update(block, { live, output, waits }) {
    const same = block === this.block && live === this.live && waits === this.waits;
    if (same && output === this.output) return;
    Object.assign(this, { block, live, output, waits });
    const { status } = block.state;
    // Only more output: everything else stays, and so does what somebody reads in it.
    if (same && this.tail?.isConnected) {
      this.tail.update(output);
      return;
    }
    const took = block.time.completed ? formatDuration(block.time.completed - (block.time.ran ?? block.time.created)) : "";
    const words = waits ? "waiting for you" : WORDS[status];
    fill(this.summary,
      icon("chevron"), h("span.tool-name", visibleText(block.name)), h("code.grow", visibleText(callSummary(block, live))),
      changes(block), h("span.tool-state", { class: waits ? "you" : TONES[status] }, status === "running" && !waits ? h("span.dot.run") : null, words), h("span.dim.took", took));
    if (status === "completed" && STEPS_OPEN.has(block.name) && this.opened === null) {
      this.opened = true;
      this.element.open = true;
    }
    if (this.element.open) this.drawBody();
  }

  drawBody() {
    if (!this.element.open) return;
    const { state } = this.block;
    this.tail = this.output && state.status === "running" ? liveOutput(this.output) : null;
    fill(this.body,
      inputView(this.block),
      state.structured?.files?.length ? state.structured.files.map((file) => fileView(file)) : null,
      state.status === "error" ? h("div.error", plain(visibleText(state.error.message))) : null,
      this.tail,
      this.block.name === "task" ? this.childView() : null,
      this.contentView());
  }

  contentView() {
    const { content = [], structured, outputPaths } = this.block.state;
    const views = content.map((part) => (part.type === "text" ? (structured?.files?.length ? null : h("div.output", plain(part.text))) : fileContent(part)));
    const ids = new Set([...(outputPaths ?? []).join(" ").matchAll(MANAGED), ...content.flatMap((part) => [...(part.text ?? "").matchAll(MANAGED)])].map((match) => match[1]));
    return [views, [...ids].map((id) => this.wholeOutput(id))];
  }

  wholeOutput(id) {
    const place = h("div.whole");
    const load = button("Load the whole output", { class: "link", onclick: () => attempt(load, async () => {
      const text = await readText(`/api/tool-output/${encodeURIComponent(id)}`);
      fill(place, plain(text));
      load.remove();
    }) });
    return h("div", load, place);
  }

  childView() {
    const known = this.block.state.structured?.sessionID;
    if (known) return h("p", h("a.child", { href: `/s/${known}` }, icon("branch"), "Open the sub-agent's session"));
    const place = h("p.dim", "The sub-agent starts…");
    get(sessionPath(this.sessionID, "/children?limit=20")).then((page) => {
      const children = page.data.filter((child) => child.time.created >= this.block.time.created - 1000);
      if (children.length) fill(place, children.map((child) => h("a.child", { href: `/s/${child.id}` }, icon("branch"), h("bdi", visibleText(child.title)))));
    }).catch(() => {});
    return place;
  }
}

/** What a command writes while it runs. It stays at the end unless somebody scrolled. */
function liveOutput(text) {
  const place = h("pre.output.plain.live", { tabindex: "0" }, text);
  place.update = (more) => {
    const atEnd = place.scrollTop + place.clientHeight >= place.scrollHeight - 30;
    place.textContent = more;
    if (atEnd) place.scrollTop = place.scrollHeight;
  };
  requestAnimationFrame(() => (place.scrollTop = place.scrollHeight));
  return place;
}

function changes(block) {
  const files = block.state.structured?.files;
  if (!Array.isArray(files) || !files.length) return null;
  const sum = (name) => files.reduce((total, file) => total + (file[name] ?? 0), 0);
  return h("span.changes", h("span.good-text", `+${sum("additions")}`), h("span.bad-text", `−${sum("deletions")}`));
}

function inputView(block) {
  const { input } = block.state;
  if (typeof input !== "object") return input ? h("pre.command", exact(String(input).slice(0, 20_000))) : null;
  if (typeof input.command === "string") return h("pre.command", exact(input.command));
  if (STEPS_OPEN.has(block.name) && block.state.structured?.files?.length) return null;
  const text = JSON.stringify(input, null, 2);
  return text === "{}" ? null : h("details.input", h("summary", icon("chevron"), "Input"), codeBlock(visibleText(text), "json"));
}

function fileView(file) {
  return h("div.file-change", h("div.file-head", h("code", exact(file.file ?? file.path ?? "")), h("span.dim", file.status ?? "")), file.patch ? diffView(file.patch) : null);
}

/** Media of a tool or a prompt: a picture is shown from here only, never from elsewhere. */
export function fileContent(part, sessionID) {
  const name = part.name ?? part.mime;
  if (!IMAGES.test(part.mime ?? "")) return h("p.attached", icon("file"), visibleText(name));
  const image = h("img.preview", { alt: visibleText(name), loading: "lazy" });
  if (part.uri.startsWith(`data:${part.mime}`)) image.src = part.uri;
  else {
    const stored = /^fairlead-file:\/(fil_[0-9a-f]{64})$/.exec(part.uri)?.[1];
    if (!stored || !sessionID) return h("p.attached", icon("file"), visibleText(name));
    readObjectUrl(sessionPath(sessionID, `/attachment/${stored}`)).then((url) => (image.src = url)).catch(() => image.replaceWith(h("p.attached", icon("file"), `${name} is not stored any more`)));
  }
  return h("figure", image, h("figcaption.dim", visibleText(name)));
}
