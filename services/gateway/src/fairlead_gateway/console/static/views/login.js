// Sign-in: with a key, with the link that `fairlead up` prints, or at the identity provider.

import { quietGet, quietPost } from "../api.js";
import { button, fill, h, icon, uniqueId } from "../dom.js";

class LoginView extends HTMLElement {
  connectedCallback() {
    const fragment = new URLSearchParams(location.hash.slice(1));
    this.next = safeNext(new URLSearchParams(location.search).get("next"));
    this.problem = h("p.problem", { role: "alert", hidden: true });
    this.card = h("div.login-card");
    fill(this, this.card);
    // A ticket must not stay in the address, nor in the history of the browser.
    if (location.hash) history.replaceState(null, "", location.pathname + location.search);
    this.draw();
    if (fragment.get("ticket")) this.send({ ticket: fragment.get("ticket") });
    if (fragment.get("failed")) this.complain(fragment.get("failed"));
  }

  async draw() {
    const methods = await quietGet("/api/sign-in").then((answer) => answer.data).catch(() => ({ key: true }));
    if (methods.open) {
      location.replace(this.next);
      return;
    }
    const id = uniqueId();
    this.field = h("input", { id, type: "password", autocomplete: "current-password", required: true, placeholder: "flk_…", spellcheck: "false" });
    this.submit = h("button.primary", { type: "submit" }, icon("key"), h("span", "Sign in"));
    const form = h("form", {
      onsubmit: (event) => {
        event.preventDefault();
        this.send({ key: this.field.value });
      },
    }, h("label", { for: id }, "Key"), this.field, this.problem, this.submit);
    fill(this.card,
      h("img", { src: document.querySelector("link[rel=icon]").getAttribute("href"), alt: "", width: 40, height: 40 }),
      h("h1", "Fairlead"),
      h("p.dim", "Sign in to work with your agents."),
      methods.provider && button("Continue with single sign-on", { class: "primary", onclick: () => location.assign(`${methods.provider}?next=${encodeURIComponent(this.next)}`) }, "user"),
      methods.provider && h("p.or", "or"),
      form,
      h("p.dim.small", h("code", "fairlead up"), " prints a link that signs in. ", h("code", "fairlead token create"), " makes a key."));
    this.field.focus();
  }

  async send(body) {
    this.problem.hidden = true;
    if (this.submit) this.submit.disabled = true;
    try {
      await quietPost("/api/sign-in", body);
      location.replace(this.next);
    } catch (error) {
      this.complain(error.status === 401 ? `Not signed in: ${error.message}` : error.message);
    } finally {
      if (this.submit) this.submit.disabled = false;
    }
  }

  complain(text) {
    this.problem.textContent = text;
    this.problem.hidden = false;
  }
}

/** A page of this console, and nowhere else. */
export function safeNext(path) {
  return path && /^\/(?!\/)[\w/-]*$/.test(path) && path !== "/login" ? path : "/";
}

customElements.define("fl-login", LoginView);
