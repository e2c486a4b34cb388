// The side of a session: why it moves or does not, what the model is told, the log, tasks, and use.

import { get, now, sessionPath } from "../api.js";
import { attempt } from "../dialog.js";
import { button, fill, h, icon } from "../dom.js";
import { formatAgo, formatClock, formatCost, formatCount, formatDate, formatDuration, promptTokens, totalTokens } from "../format.js";
import { copyButton, plain } from "../prose.js";
import { visibleText } from "../visible.js";

const TABS = ["Explain", "Context", "Events", "Todos", "Usage"];

export class SidePanel {
  constructor(app, sessionID, read) {
    this.app = app;
    this.sessionID = sessionID;
    this.read = read;
    this.tab = localStorage.getItem("fairlead-tab") ?? "Explain";
    this.eventFilter = "";
    this.eventFoot = h("div");
    this.tabs = h("div.tabs", { role: "tablist", "aria-label": "About the session" }, TABS.map((name) =>
      h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "side-panel", onclick: () => this.select(name) }, name)));
    this.tabs.addEventListener("keydown", (event) => this.onKey(event));
    this.panel = h("div.side-panel", { role: "tabpanel", id: "side-panel", tabindex: "0" });
    this.element = h("aside.side", { "aria-label": "About the session" }, this.tabs, this.panel);
    this.select(TABS.includes(this.tab) ? this.tab : "Explain");
  }

  onKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = (TABS.indexOf(this.tab) + step + TABS.length) % TABS.length;
    this.select(TABS[at]);
    this.tabs.children[at].focus();
  }

  select(name) {
    this.tab = name;
    localStorage.setItem("fairlead-tab", name);
    for (const tab of this.tabs.children) {
      tab.setAttribute("aria-selected", String(tab.textContent === name));
      tab.tabIndex = tab.textContent === name ? 0 : -1;
    }
    this.panel.setAttribute("aria-labelledby", `tab-${name}`);
    this.epoch = undefined;
    this.drawn = undefined;
    this.draw();
  }

  /** Draw what changed. Called after every batch of events, so each tab looks at its own part. */
  draw() {
    const { state, explain } = this.read();
    const part = { Explain: explain, Context: state.items.length, Events: state.events.length + state.seq * 1e6, Todos: state.todos, Usage: state.items.length + (state.openStep ?? "") }[this.tab];
    if (this.drawn === part && part !== undefined) return;
    this.drawn = part;
    this[`draw${this.tab}`](state, explain);
  }

  drawExplain(_state, explain) {
    if (!explain) {
      fill(this.panel, h("p.dim", "Reading the log…"));
      return;
    }
    const rows = [["State", explain.state === explain.code ? explain.state : `${explain.state} (${explain.code})`], ["Since", explain.since ? `${formatDate(explain.since)} (${formatAgo(explain.since, now())})` : null], ["Next", explain.next], ["Owner", explain.owner], ["Generation", explain.generation ? String(explain.generation) : null], ["Last approved by", explain.approved_by]];
    // One thing that it waits for stands in the sentence. A session can be opened.
    const waits = explain.waiting_on?.length > 1 || explain.waiting_on?.[0]?.kind === "session" ? explain.waiting_on : [];
    fill(this.panel, h("p.sentence", visibleText(explain.reason)), h("dl.facts", rows.filter(([, value]) => value).map(([name, value]) => [h("dt", name), h("dd", visibleText(value))])),
      waits.length ? [h("h3", "It waits for"), h("ul.bare", waits.map((item) => h("li", h("span.chip.small", item.kind), " ", item.kind === "session" ? h("a", { href: `/s/${item.id}` }, visibleText(item.what)) : visibleText(item.what))))] : null,
      this.curlButton(() => "/explain"));
  }

  /** Copies the call that reads what stands here. */
  curlButton(rest) {
    return copyButton(() => `curl -H "Authorization: Bearer $FAIRLEAD_TOKEN" '${location.origin}${sessionPath(this.sessionID, rest())}'`, "Copy as curl", true);
  }

  async drawContext(state) {
    const age = state.items.filter((item) => item.type === "system" || item.type === "compaction").length;
    if (!this.epoch || this.epochAge !== age) {
      this.epochAge = age;
      fill(this.panel, h("p.dim", "Reading the context…"));
      this.epoch = await get(sessionPath(this.sessionID, "/epoch")).then((answer) => answer.data).catch((error) => ({ error: error.message, baseline: [] }));
      if (this.tab !== "Context") return;
    }
    const turns = state.items.filter((item) => item.type === "assistant" && item.tokens);
    const last = turns.at(-1);
    const model = last && this.app.models.find((one) => one.id === last.model.id && one.providerID === last.model.providerID);
    const used = last ? promptTokens(last.tokens) + last.tokens.output : 0;
    const changes = state.items.filter((item) => item.type === "system");
    fill(this.panel,
      model ? windowBar(used, model.limit.context, last.tokens) : h("p.dim", "No turn yet: nothing is in the window."),
      this.epoch.error ? h("p.bad-text", this.epoch.error) : null,
      h("h3", `Baseline${this.epoch.seq ? ` since event ${this.epoch.seq}` : ""}`),
      this.epoch.baseline?.length ? this.epoch.baseline.map((part) => h("details.part", h("summary", icon("chevron"), h("code", part.source ?? part.key ?? "part"), h("span.dim", `about ${formatCount(Math.ceil((part.text ?? "").length / 4))} tok`)), plain(part.text ?? ""))) : h("p.dim", "None yet: the first turn takes it."),
      h("h3", `Changes since (${changes.length})`),
      changes.length ? changes.map((item) => h("details.part", h("summary", icon("chevron"), h("span", formatClock(item.time.created))), plain(item.text))) : h("p.dim", "Nothing changed."),
      button("Read again", { class: "link", onclick: () => this.select("Context") }));
  }

  drawEvents(state) {
    const wanted = this.eventFilter.toLowerCase();
    const all = [...(this.older ?? []), ...state.events];
    const shown = all.filter((event) => !wanted || `${event.type} ${event.by ?? ""} ${event.seq}`.toLowerCase().includes(wanted)).slice(-(this.eventFloor ?? 200)).reverse();
    if (!this.eventList?.isConnected) {
      const field = h("input", { type: "search", placeholder: "Filter by type, who or number", "aria-label": "Filter events", value: this.eventFilter, oninput: () => {
        this.eventFilter = field.value;
        this.drawn = undefined;
        this.draw();
      } });
      this.eventList = h("div.events");
      fill(this.panel, field, h("div.row", h("p.dim.small.grow", "Newest first"), this.curlButton(() => `/history?after=${Math.max(0, this.read().state.seq - 50)}`)), this.eventList);
    }
    // An event never changes, so its row stays: open, if somebody opened it.
    const rows = new Map(shown.map((event) => [event.seq, this.eventRows?.get(event.seq) ?? eventRow(event)]));
    for (const [seq, row] of this.eventRows ?? []) if (!rows.has(seq)) row.remove();
    this.eventRows = rows;
    let place = this.eventList.firstChild;
    for (const row of rows.values()) {
      if (row === place) place = place.nextSibling;
      else this.eventList.insertBefore(row, place);
    }
    this.eventList.append(fill(this.eventFoot, shown.length ? null : h("p.dim", "No event fits."), this.olderButton(all)));
  }

  /** Events from before the page was opened come from the history. */
  olderButton(all) {
    const first = all[0]?.seq ?? this.read().state.seq + 1;
    if (first <= 1) return null;
    const more = button("Older events", { class: "link", onclick: () => attempt(more, async () => {
      const page = await get(sessionPath(this.sessionID, `/history?after=${Math.max(0, first - 101)}&limit=100`));
      const found = page.data.map((event) => ({ seq: event.durable.seq, type: event.type, data: event.data, by: event.metadata?.by })).filter((event) => event.seq < first);
      this.older = [...found, ...(this.older ?? [])];
      this.eventFloor = (this.eventFloor ?? 200) + 100;
      this.drawn = undefined;
      this.draw();
    }) });
    return more;
  }

  async drawTodos(state) {
    let todos = state.todos;
    if (!todos) {
      todos = await get(sessionPath(this.sessionID, "/todo")).then((answer) => answer.data).catch(() => []);
      if (this.tab !== "Todos") return;
    }
    if (!todos.length) {
      fill(this.panel, h("p.dim", "The agent has no list of tasks."));
      return;
    }
    const done = todos.filter((todo) => todo.status === "completed").length;
    fill(this.panel, h("p.dim", `${done} of ${todos.length} done`), h("ul.todos", todos.map((todo) => h("li", { class: todo.status }, h("span.box", { "aria-label": todo.status }, todo.status === "completed" ? icon("check") : null), h("span", visibleText(todo.content)), todo.priority === "high" ? h("span.chip.small", "high") : null))));
  }

  drawUsage(state) {
    const turns = state.items.filter((item) => item.type === "assistant" && item.tokens);
    const session = this.app.live.sessions.get(this.sessionID);
    const cost = session?.cost ?? turns.reduce((sum, turn) => sum + turn.cost, 0);
    const budget = state.profile.budget ?? session?.budget;
    const read = turns.reduce((sum, turn) => sum + promptTokens(turn.tokens), 0);
    const cached = turns.reduce((sum, turn) => sum + turn.tokens.cache.read, 0);
    const facts = [["Cost", formatCost(cost)], ["Tokens", formatCount(session ? totalTokens(session.tokens) : turns.reduce((sum, turn) => sum + totalTokens(turn.tokens), 0))], ["Read from cache", read ? `${Math.round((100 * cached) / read)} %` : "none"], ["Sub-agents", session?.children ? formatCost(session.children.cost) : null], ["Changed files", session?.summary ? `${session.summary.files} (+${session.summary.additions} −${session.summary.deletions})` : null]];
    fill(this.panel, h("dl.facts", facts.filter(([, value]) => value).map(([name, value]) => [h("dt", name), h("dd", value)])),
      budget?.cost ? meter(`Budget: ${formatCost(cost)} of ${formatCost(budget.cost)}`, cost / budget.cost) : null,
      h("h3", "Tokens per turn"), turns.length ? chart(turns) : h("p.dim", "No turn has ended yet."));
  }
}

function eventRow(event) {
  const open = () => {
    if (row.open && row.childElementCount < 2) row.append(plain(visibleText(JSON.stringify(event.data, null, 2).slice(0, 40_000))));
  };
  const row = h("details.event", { ontoggle: open }, h("summary", h("span.number", String(event.seq)), h("code", event.type.replace("session.next.", "")), event.by ? h("span.dim", event.by) : null, h("time.dim", { title: formatDate(event.data.timestamp) }, formatClock(event.data.timestamp))));
  return row;
}

function meter(words, share) {
  const bar = h("div.bar", { role: "meter", "aria-label": words, "aria-valuenow": String(Math.round(share * 100)), "aria-valuemin": "0", "aria-valuemax": "100" }, h("span"));
  bar.firstChild.style.width = `${Math.min(100, share * 100)}%`;
  bar.classList.toggle("full", share > 0.85);
  return h("div.meter", h("div", words), bar);
}

function windowBar(used, size, tokens) {
  return [meter(`Window: ${formatCount(used)} of ${formatCount(size)} tokens`, used / size), h("dl.facts", h("dt", "New"), h("dd", formatCount(tokens.input)), h("dt", "From cache"), h("dd", formatCount(tokens.cache.read)), h("dt", "Written to cache"), h("dd", formatCount(tokens.cache.write)), h("dt", "Answer"), h("dd", formatCount(tokens.output + tokens.reasoning)))];
}

/** The newest turns as columns: read and written tokens. */
function chart(turns) {
  const shown = turns.slice(-60);
  const most = Math.max(...shown.map((turn) => totalTokens(turn.tokens)), 1);
  const columns = shown.map((turn) => {
    const words = `${formatDate(turn.time.created)}: ${formatCount(promptTokens(turn.tokens))} read, ${formatCount(turn.tokens.output + turn.tokens.reasoning)} written, ${formatCost(turn.cost)}${turn.time.completed ? `, ${formatDuration(turn.time.completed - turn.time.created)}` : ""}`;
    const column = h("span.column", { title: words }, h("span.written"), h("span.read"));
    column.children[0].style.height = `${((turn.tokens.output + turn.tokens.reasoning) / most) * 100}%`;
    column.children[1].style.height = `${(promptTokens(turn.tokens) / most) * 100}%`;
    return column;
  });
  return h("figure.chart", h("div.columns", { role: "img", "aria-label": `${shown.length} turns, at most ${formatCount(most)} tokens` }, columns), h("figcaption.dim.small", h("span.key.read"), "read ", h("span.key.written"), `written · at most ${formatCount(most)}`));
}
