// Where a person writes: the pending inputs, the text, attachments, and how a prompt joins the work.

import { messageId, patch, post, remove, sessionPath, upload } from "../api.js";
import { askText, attempt, toast } from "../dialog.js";
import { button, fill, h, icon, show } from "../dom.js";
import { agentPicker, modelOf, modelPicker } from "../views/new_session.js";
import { oneLine } from "../format.js";
import { visibleText } from "../visible.js";

export class Composer {
  constructor(app, sessionID) {
    this.app = app;
    this.sessionID = sessionID;
    /** @type {any[]} */
    this.files = [];
    this.delivery = "steer";
    /** What was sent and is not in the log yet. */
    this.sent = new Map();
    this.drafts = `fairlead-draft-${sessionID}`;
    /** @type {(() => void) | undefined} */
    this.onSent = undefined;
    this.field = h("textarea", { rows: 1, placeholder: "Write to the agent…", "aria-label": "Message", dir: "auto", value: sessionStorage.getItem(this.drafts) ?? "" });
    this.field.addEventListener("input", () => {
      this.attemptId = null;
      this.grow();
    });
    this.field.addEventListener("keydown", (event) => this.onKey(event));
    this.field.addEventListener("paste", (event) => this.take(event.clipboardData?.files));
    this.sendButton = button("Send", { class: "primary round", quiet: true, onclick: () => this.send() }, "send");
    this.modes = h("div.switch", { role: "radiogroup", "aria-label": "When the agent sees it", hidden: true }, this.mode("steer", "Steer", "Joins at the next safe moment of the work"), this.mode("queue", "Queue", "Waits until the work is done"));
    this.attached = h("ul.attachments", { hidden: true });
    this.pending = h("ul.pending-list", { "aria-label": "Pending input" });
    this.pickers = h("div.pickers");
    const add = h("input.unseen", { type: "file", multiple: true, "aria-label": "Attach files", tabindex: "-1", onchange: () => this.take(add.files) });
    this.element = h("section.composer", { "aria-label": "Composer" }, this.pending,
      h("div.box", this.attached, this.field, h("div.tools", button("Attach files", { quiet: true, onclick: () => add.click() }, "plus"), add, this.pickers, h("span.grow"), this.modes, this.sendButton)));
    this.element.addEventListener("dragover", (event) => {
      event.preventDefault();
      this.element.classList.add("dropping");
    });
    this.element.addEventListener("dragleave", () => this.element.classList.remove("dropping"));
    this.element.addEventListener("drop", (event) => {
      event.preventDefault();
      this.element.classList.remove("dropping");
      this.take(event.dataTransfer?.files);
    });
  }

  mode(name, words, title) {
    return h("button", { type: "button", role: "radio", title, "aria-checked": String(name === this.delivery), "data-mode": name, onclick: () => {
      this.delivery = name;
      for (const one of this.modes.children) one.setAttribute("aria-checked", String(one.dataset.mode === name));
    } }, words);
  }

  onKey(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.send();
    } else if (event.key === "Escape") this.field.blur();
    else return;
    event.stopPropagation();
  }

  grow() {
    sessionStorage.setItem(this.drafts, this.field.value);
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight, 260)}px`;
  }

  /** The agent and the model of the next turns. */
  setProfile(profile) {
    const key = `${profile.agent} ${profile.model?.providerID}/${profile.model?.id} ${this.app.models.length}`;
    if (key === this.profileKey || !this.app.models.length) return;
    this.profileKey = key;
    const agent = agentPicker(this.app, profile.agent, profile.agent ? null : "agent");
    const model = modelPicker(this.app, profile.model, profile.model ? null : "model");
    // The pickers show what the log says, so a choice that failed goes back.
    const choose = (element, path, body) => element.addEventListener("change", async () => {
      await attempt(element, () => post(sessionPath(this.sessionID, path), body()));
      this.profileKey = null;
    });
    choose(agent, "/agent", () => ({ agent: agent.value }));
    choose(model, "/model", () => ({ model: modelOf(model.value) }));
    fill(this.pickers, agent, model);
  }

  /** `closed` says why nobody can write here; null where they can. `has(id)` whether the log has a prompt. */
  setState({ inbox, shells, working, closed, has }) {
    show(this.modes, working);
    this.working = working;
    this.field.disabled = closed !== null;
    this.sendButton.disabled = closed !== null || this.sendButton.classList.contains("pending");
    this.field.placeholder = closed ?? "Write to the agent…";
    for (const id of this.sent.keys()) if (has(id)) this.sent.delete(id);
    const key = JSON.stringify([inbox, shells, [...this.sent]]);
    if (key === this.inboxKey) return;
    this.inboxKey = key;
    const sent = [...this.sent.values()].map((text) => h("li.pending-input.on-its-way", h("span.chip.small", "on its way"), h("bdi.grow", visibleText(oneLine(text)))));
    fill(this.pending, inbox.map((input) => this.pendingItem(input)), sent, shells.map((shell) => h("li.pending-input", h("span.chip.small", "command"), h("code.grow", visibleText(oneLine(shell.command))))));
  }

  pendingItem(input) {
    const path = sessionPath(this.sessionID, `/input/${input.id}`);
    const edit = button("Edit", { quiet: true, onclick: async () => {
      const text = await askText("Edit the pending input", { value: input.prompt.text, multiline: true });
      if (text?.trim()) attempt(edit, () => patch(path, { prompt: { ...pickPrompt(input.prompt), text } }), { stay: true });
    } }, "edit");
    const cancel = button("Cancel", { quiet: true, onclick: () => attempt(cancel, () => remove(path), { stay: true }) }, "cross");
    const now = button("Steer now", { class: "small", onclick: () => attempt(now, () => patch(path, { delivery: "steer" }), { stay: true }) });
    return h("li.pending-input", { "data-input": input.id }, h("span.chip.small", input.delivery), h("bdi.grow", visibleText(oneLine(input.prompt.text))), input.delivery === "queue" ? now : null, edit, cancel);
  }

  async take(files) {
    for (const file of files ?? []) {
      const entry = { name: file.name || "pasted image", state: "uploading" };
      this.files.push(entry);
      this.drawFiles();
      try {
        Object.assign(entry, await upload(this.sessionID, file), { state: "ready" });
      } catch (error) {
        this.files = this.files.filter((other) => other !== entry);
        toast(`${entry.name}: ${error.message}`, "error");
      }
      this.drawFiles();
    }
  }

  drawFiles() {
    show(this.attached, this.files.length);
    fill(this.attached, this.files.map((file) => h("li", icon("file"), h("span", visibleText(file.name)), file.state === "uploading" ? h("span.dim", "…") : null, button(`Remove ${file.name}`, { quiet: true, onclick: () => {
      this.files = this.files.filter((other) => other !== file);
      this.drawFiles();
    } }, "cross"))));
  }

  async send() {
    const text = this.field.value;
    if (this.field.disabled || (!text.trim() && !this.files.length)) return;
    if (this.files.some((file) => file.state === "uploading")) {
      toast("An attachment is still on its way.");
      return;
    }
    // The same id for a second try: the prompt is admitted once.
    this.attemptId ??= messageId();
    const files = this.files.map(({ uri, name }) => ({ uri, name }));
    const sent = await attempt(this.sendButton, () => post(sessionPath(this.sessionID, "/prompt"), { id: this.attemptId, prompt: { text, ...(files.length && { files }) }, delivery: this.working ? this.delivery : "steer" }).then(() => true));
    if (!sent) return;
    this.sent.set(this.attemptId, text);
    this.attemptId = null;
    this.files = [];
    this.drawFiles();
    if (this.field.value === text) this.field.value = "";
    this.grow();
    this.field.focus();
    this.onSent?.();
  }
}

function pickPrompt({ text, files, agents }) {
  return { text, ...(files && { files: files.map(({ uri, name, description }) => ({ uri, ...(name && { name }), ...(description && { description }) })) }), ...(agents && { agents }) };
}
