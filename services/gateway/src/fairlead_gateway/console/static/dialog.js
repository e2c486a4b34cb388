// Dialogs, menus and short messages. Each keeps the focus inside, and gives it back.

import { announce, button, fill, h, uniqueId } from "./dom.js";

/** Open a dialog with a title; `build(close)` makes what it holds. Resolves to what `close` gets. */
export function openDialog(title, build, { kind = "" } = {}) {
  return new Promise((resolve) => {
    const id = uniqueId();
    const before = /** @type {HTMLElement} */ (document.activeElement);
    const dialog = h(`dialog.dialog`, { class: kind, "aria-labelledby": id });
    const close = (value) => {
      dialog.close();
      dialog.remove();
      before?.focus?.();
      resolve(value);
    };
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      close(undefined);
    });
    dialog.addEventListener("click", (event) => event.target === dialog && close(undefined));
    dialog.append(h("h2", { id }, title), ...[build(close)].flat());
    document.body.append(dialog);
    dialog.showModal();
  });
}

/**
 * Ask for a yes. With `typed`, the person has to type that word.
 * @param {string} title
 * @param {string} text
 * @param {{yes?: string, danger?: boolean, typed?: string}} [options]
 */
export function confirmDialog(title, text, { yes = "Yes", danger = false, typed } = {}) {
  return openDialog(title, (close) => {
    const go = button(yes, { class: danger ? "danger" : "primary", disabled: Boolean(typed), onclick: () => close(true) });
    const field = typed && h("input", { "aria-label": `Type ${typed}`, autocomplete: "off", oninput: () => (go.disabled = field.value !== typed) });
    const no = button("Cancel", { onclick: () => close(false) });
    return [h("p", text), typed && h("label.field", h("span", "Type ", h("code", typed), " to go on"), field), h("div.actions", no, go)].filter(Boolean);
  });
}

/** Ask for a line of text. */
export function askText(title, { value = "", label = title, yes = "Save", multiline = false } = {}) {
  return openDialog(title, (close) => {
    const field = h(multiline ? "textarea" : "input", { "aria-label": label, value, autocomplete: "off", rows: multiline ? 4 : undefined });
    const form = h("form", {
      onsubmit: (event) => {
        event.preventDefault();
        close(field.value);
      },
    }, field, h("div.actions", button("Cancel", { onclick: () => close(undefined) }), h("button.primary", { type: "submit" }, yes)));
    setTimeout(() => field.select(), 0);
    return form;
  });
}

/** A short message at the edge of the page. */
export function toast(text, kind = "info") {
  const place = document.getElementById("toasts");
  const item = h("div.toast", { class: kind, role: kind === "error" ? "alert" : "status" }, text);
  place.append(item);
  announce(text);
  setTimeout(() => item.remove(), kind === "error" ? 8000 : 3500);
}

/**
 * Do something that may fail: the button shows that it works, and a message says why it failed.
 * With `stay` it goes on to show that until an event takes it away.
 */
export async function attempt(element, work, { stay = false } = {}) {
  if (element?.disabled) return undefined;
  if (element) {
    element.disabled = true;
    element.classList.add("pending");
  }
  let done = false;
  try {
    const result = await work();
    done = true;
    return result;
  } catch (error) {
    toast(error.message, "error");
    return undefined;
  } finally {
    if (element && !(done && stay)) settle(element);
  }
}

/** The end of a pending action. */
export function settle(element) {
  element.disabled = false;
  element.classList.remove("pending");
}

/** A menu of actions under a button. */
export function openMenu(anchor, entries) {
  const menu = h("div.menu", { role: "menu" });
  const before = /** @type {HTMLElement} */ (document.activeElement);
  const close = () => {
    menu.remove();
    removeEventListener("pointerdown", outside, true);
    before?.focus?.();
  };
  const outside = (event) => menu.contains(event.target) || close();
  fill(menu, entries.map(({ words, run, danger, disabled }) =>
    h("button", { type: "button", role: "menuitem", class: danger ? "danger" : "", disabled, onclick: () => (close(), run()) }, words)));
  menu.addEventListener("keydown", (event) => {
    const items = [...menu.querySelectorAll("button:not(:disabled)")];
    const at = items.indexOf(document.activeElement);
    if (event.key === "Escape") close();
    else if (event.key === "ArrowDown") items[(at + 1) % items.length].focus();
    else if (event.key === "ArrowUp") items.at(at - 1).focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  document.body.append(menu);
  const box = anchor.getBoundingClientRect();
  menu.style.top = `${box.bottom + 4}px`;
  menu.style.left = `${Math.max(8, Math.min(box.right - menu.offsetWidth, innerWidth - menu.offsetWidth - 8))}px`;
  addEventListener("pointerdown", outside, true);
  menu.querySelector("button")?.focus();
}
