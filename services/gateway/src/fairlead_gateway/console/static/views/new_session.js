// The form of a new session: where it works, as which agent, with which model, and the first words.

import { messageId, post, sessionPath, get } from "../api.js";
import { attempt, openDialog } from "../dialog.js";
import { button, h } from "../dom.js";

export function openNewSession(app) {
  return openDialog("New session", (close) => {
    const text = h("textarea", { rows: 4, placeholder: "What should the agent do?", "aria-label": "First prompt" });
    const place = h("input", { placeholder: "default location", "aria-label": "Directory", list: "places", autocomplete: "off", spellcheck: "false" });
    const places = h("datalist", { id: "places" }, [...new Set([...app.live.sessions.values()].map((session) => session.location.directory))].map((path) => h("option", { value: path })));
    const agent = agentPicker(app, undefined, "default agent");
    const model = modelPicker(app, undefined, "default model");
    get("/api/location").then((found) => (place.placeholder = found.directory)).catch(() => {});
    const create = async () => {
      const made = await attempt(go, async () => {
        const body = { ...(place.value.trim() && { location: { directory: place.value.trim() } }), ...(agent.value && { agent: agent.value }), ...(modelOf(model.value) && { model: modelOf(model.value) }) };
        const session = (await post("/api/session", body)).data;
        if (text.value.trim()) await post(sessionPath(session.id, "/prompt"), { id: messageId(), prompt: { text: text.value } });
        return session;
      });
      if (!made) return;
      close();
      app.go(`/s/${made.id}`);
    };
    const go = button("Start", { class: "primary", onclick: create });
    text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        create();
      }
    });
    setTimeout(() => text.focus(), 0);
    return [text, h("label.field", h("span", "Directory"), place, places), h("div.row", h("label.field", h("span", "Agent"), agent), h("label.field", h("span", "Model"), model)), h("div.actions", button("Cancel", { onclick: () => close() }), go)];
  }, { kind: "new-session" });
}

export function agentPicker(app, chosen, none) {
  const agents = app.agents.filter((agent) => !agent.hidden && agent.mode !== "subagent");
  return h("select", { "aria-label": "Agent" }, none && h("option", { value: "" }, none), agents.map((agent) => h("option", { value: agent.id, selected: agent.id === chosen }, agent.id)));
}

export function modelPicker(app, chosen, none) {
  const name = (model) => `${model.providerID}/${model.id}`;
  return h("select", { "aria-label": "Model" }, none && h("option", { value: "" }, none), app.models.map((model) => h("option", { value: name(model), selected: chosen && name(model) === `${chosen.providerID}/${chosen.id}` }, `${model.name} · ${model.providerID}`)));
}

export function modelOf(value) {
  const slash = value.indexOf("/");
  return slash < 0 ? undefined : { providerID: value.slice(0, slash), id: value.slice(slash + 1) };
}
