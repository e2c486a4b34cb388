// Starts the page: who is here, which view the address names, the keys, the colours.

import { get, now, quietGet, remove, whenSignedOut } from "./api.js";
import { announce, button, fill, h, icon, isTyping } from "./dom.js";
import { openDialog, openMenu, toast } from "./dialog.js";
import { formatDuration } from "./format.js";
import { Live } from "./live.js";
import { openPalette } from "./palette.js";
import "./views/asks.js";
import "./views/login.js";
import "./views/ops.js";
import "./views/session.js";
import "./views/sessions.js";

/**
 * @typedef {object} App what every view gets
 * @property {Live} live
 * @property {{name: string, tenant: string, scopes: string[]} | null} principal
 * @property {any[]} agents
 * @property {any[]} models
 * @property {(path: string, options?: {replace?: boolean}) => void} go
 * @property {(scope: string) => boolean} may
 * @property {string} [title]
 * @property {(title: string) => void} [setTitle]
 * @property {() => void} [newSession]
 * @property {any} [listed] how the list of sessions was left
 */

const live = new Live();
/** @type {App} */
const app = { live, principal: null, agents: [], models: [], go, may: (scope) => app.principal?.scopes.includes(scope) ?? false };
const main = document.getElementById("main");
let view;

/** @type {[RegExp, string, string][]} */
const ROUTES = [
  [/^\/$/, "fl-sessions", "Sessions"],
  [/^\/s\/([^/]+)$/, "fl-session", "Session"],
  [/^\/asks$/, "fl-asks", "Inbox"],
  [/^\/ops$/, "fl-ops", "Operations"],
  [/^\/login$/, "fl-login", "Sign in"],
];

/** Go to another view without a new page. */
function go(path, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", path);
  else if (path !== location.pathname + location.search) history.pushState(null, "", path);
  route();
}

function route() {
  const path = location.pathname;
  const [match, tag, title] = findRoute(path);
  setTitle(title);
  for (const link of document.querySelectorAll("nav a")) {
    const here = link.getAttribute("href") === path || (path.startsWith("/s/") && link.getAttribute("href") === "/");
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.body.classList.toggle("signed-out", tag === "fl-login");
  /** @type {any} */
  const next = document.createElement(tag);
  next.app = app;
  next.params = match.slice(1).map(decodeURIComponent);
  view = next;
  fill(main, next);
  if (!main.contains(document.activeElement)) main.focus({ preventScroll: true });
  announce(title);
}

/** The title of the page. What waits for people shows in every tab. */
function setTitle(title) {
  app.title = title;
  document.title = `${live.counts.asks ? `(${live.counts.asks}) ` : ""}${title} · Fairlead`;
}
app.setTitle = setTitle;

/**
 * @param {string} path
 * @returns {[string[], string, string]}
 */
function findRoute(path) {
  for (const [pattern, tag, title] of ROUTES) {
    const match = pattern.exec(path);
    if (match) return [match, tag, title];
  }
  history.replaceState(null, "", "/");
  return [["/"], "fl-sessions", "Sessions"];
}

document.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const path = link.getAttribute("href");
  if (!path.startsWith("/") || link.hasAttribute("target")) return;
  event.preventDefault();
  go(path);
});
addEventListener("popstate", route);

// Keys -----------------------------------------------------------------------------------------

/** @type {Record<string, [string, () => void]>} */
const GLOBAL_KEYS = {
  "/": ["Search", () => view.search?.() ?? palette()],
  n: ["New session", () => newSession()],
  g: ["Sessions", () => go("/")],
  i: ["Inbox", () => go("/asks")],
  t: ["Light or dark", () => toggleTheme()],
  "?": ["All keys", showKeys],
};

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    palette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open], .menu")) return;
  if (isTyping() && event.key !== "Escape") return;
  // Enter on a button or a link is theirs. A key that is held down answers one ask, not the next one too.
  if (event.key === "Enter" && document.activeElement.closest("a, button, summary")) return;
  if (event.repeat && !"jk".includes(event.key)) return;
  const [, run] = view?.keys?.[event.key] ?? GLOBAL_KEYS[event.key] ?? [];
  if (!run) return;
  event.preventDefault();
  run();
});

function showKeys() {
  const rows = (keys) => Object.entries(keys).map(([key, [words]]) => [h("dt", h("kbd", key)), h("dd", words)]);
  openDialog("Keys", (close) => [
    h("dl.keys", h("dt", h("kbd", "Ctrl K")), h("dd", "Palette"), rows(GLOBAL_KEYS)),
    view.keys && h("h3", "On this page"),
    view.keys && h("dl.keys", rows(view.keys)),
    h("div.actions", button("Close", { onclick: () => close() })),
  ].filter(Boolean));
}

function palette() {
  if (document.querySelector("dialog[open]")) return;
  const actions = [
    ...Object.entries(GLOBAL_KEYS).slice(1).map(([hint, [words, run]]) => ({ words, hint, run })),
    app.may("ops") && { words: "Operations", run: () => go("/ops") },
    { words: "Sign out", run: signOut },
    ...(view.actions?.() ?? []),
  ].filter(Boolean);
  openPalette({ actions, live, go });
}

async function newSession() {
  if (!app.may("session:write")) return toast("You may not create sessions: ask for the scope session:write", "error");
  const { openNewSession } = await import("./views/new_session.js");
  openNewSession(app);
}
app.newSession = newSession;

// Colours --------------------------------------------------------------------------------------

function toggleTheme() {
  const { dataset } = document.documentElement;
  const dark = dataset.theme ? dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("fairlead-theme", dataset.theme);
}

// The head of the page -------------------------------------------------------------------------

function drawHead() {
  const asks = live.counts.asks;
  const badge = document.getElementById("ask-count");
  badge.textContent = asks > 99 ? "99+" : String(asks);
  badge.hidden = asks === 0;
  badge.setAttribute("aria-label", `${asks} waiting`);
  setTitle(app.title ?? "Sessions");
  document.querySelector('nav a[href="/ops"]').toggleAttribute("hidden", !app.may("ops"));
  const where = document.getElementById("connection");
  const words = { live: "Live", waiting: "Connecting…", "sign-in": "Signed out", forbidden: "Not allowed" }[live.connection] ?? "Offline";
  fill(where, h("span.dot", { class: live.connection === "live" ? "run still" : "later" }), h("span.wide", words));
  where.title = live.connection === "live" ? "Changes arrive as they happen" : "The page shows what it knew, and connects again by itself";
}

function drawTools() {
  fill(document.getElementById("tools"),
    button("Search and actions (Ctrl K)", { quiet: true, onclick: palette }, "search"),
    button("Light or dark (t)", { quiet: true, onclick: toggleTheme }, "moon"),
    button("You", { quiet: true, onclick: (event) => openMenu(event.currentTarget, [
      { words: `${app.principal.name} · tenant ${app.principal.tenant}`, disabled: true, run: () => {} },
      { words: "All keys", run: showKeys },
      { words: "Sign out", run: signOut },
    ]) }, "user"));
}

async function signOut() {
  await remove("/api/sign-in").catch(() => {});
  live.stop();
  location.assign("/login");
}

whenSignedOut(() => {
  if (location.pathname !== "/login") location.assign(`/login?next=${encodeURIComponent(location.pathname)}`);
});

async function start() {
  for (const [href, name] of [["/", "sessions"], ["/asks", "inbox"], ["/ops", "ops"]]) document.querySelector(`nav a[href="${href}"] .place`).replaceWith(icon(name));
  if (location.pathname === "/login") return route();
  try {
    app.principal = (await quietGet("/api/principal")).data;
  } catch (error) {
    if (error.status === 401) return go(`/login?next=${encodeURIComponent(location.pathname)}`, { replace: true });
    fill(main, h("div.empty.page", h("h1", "The server cannot be reached"), h("p", error.message), button("Try again", { class: "primary", onclick: () => location.reload() })));
    return undefined;
  }
  drawTools();
  const wrong = now() - Date.now();
  if (Math.abs(wrong) > 60_000) toast(`The clock of this computer is ${formatDuration(Math.abs(wrong))} ${wrong < 0 ? "ahead" : "behind"}. The page uses the time of the server.`);
  for (const name of ["connection", "counts", "asks"]) live.addEventListener(name, drawHead);
  live.addEventListener("connection", () => live.connection === "sign-in" && location.assign(`/login?next=${encodeURIComponent(location.pathname)}`));
  setInterval(() => view?.tick?.(now()), 1000);
  live.start();
  drawHead();
  route();
  const [agents, models] = await Promise.all([get("/api/agent"), get("/api/model")].map((asked) => asked.catch(() => ({ data: [] }))));
  Object.assign(app, { agents: agents.data, models: models.data });
  view?.catalogReady?.();
  return undefined;
}

start();
