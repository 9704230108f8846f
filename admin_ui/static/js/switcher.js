// Ctrl/Cmd+K: go to another session by typing a part of its title.

import { get } from "./api.js";
import { showDialog } from "./dialogs.js";
import { h, setText } from "./dom.js";
import { shortTime } from "./format.js";

const LISTED = 200;
const SHOWN = 12;

/** Asks for a session; calls `open(id)`, with null for a new chat. */
export async function switchSession(workspace, open) {
  if (document.querySelector("dialog[open]")) return;
  const input = h("input", { class: "switch-input", placeholder: "Go to a session…", "aria-label": "Go to a session", role: "combobox", "aria-expanded": "true", "aria-controls": "switch-list" });
  const list = h("ul", { class: "switch-list", id: "switch-list", role: "listbox" });
  const note = h("p", { class: "switch-note" }, "Loading…");
  const dialog = h("dialog", { class: "dialog switcher", "aria-label": "Go to a session", dataset: { switcher: "" } }, input, list, note);
  const closed = showDialog(dialog);
  const chooser = new Chooser({ input, list, note, choose: (id) => dialog.close(id === null ? "new" : `open ${id}`) });
  get("sessions/logs", { projectId: workspace, rootOnly: 1, limit: LISTED })
    .then((page) => chooser.offer(page.sessions))
    .catch((error) => setText(note, error.message));
  const answer = await closed;
  if (answer === "new") open(null);
  else if (answer.startsWith("open ")) open(answer.slice(5));
}

class Chooser {
  constructor({ input, list, note, choose }) {
    Object.assign(this, { input, list, note, choose });
    this.sessions = [];
    this.at = 0;
    input.addEventListener("input", () => {
      this.at = 0;
      this.draw();
    });
    input.addEventListener("keydown", (event) => this.key(event));
  }

  offer(sessions) {
    this.sessions = sessions;
    this.draw();
  }

  found() {
    const wanted = this.input.value.trim().toLowerCase();
    const matches = this.sessions.filter((one) => (one.title || "untitled").toLowerCase().includes(wanted));
    return [...matches.slice(0, SHOWN), null]; // the last one is a new chat
  }

  key(event) {
    const found = this.found();
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps) {
      event.preventDefault();
      this.at = (this.at + steps[event.key] + found.length) % found.length;
      this.draw();
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.choose(found[this.at]?.id ?? null);
    }
  }

  draw() {
    const found = this.found();
    setText(this.note, found.length > 1 ? "" : "No session has this in its title.");
    this.note.hidden = !this.note.textContent;
    this.list.replaceChildren(
      ...found.map((session, at) =>
        h(
          "li",
          { role: "option", id: `switch-${at}`, "aria-selected": String(at === this.at), onclick: () => this.choose(session?.id ?? null) },
          h("span", {}, session ? session.title || "Untitled" : "New chat"),
          session ? h("time", {}, shortTime(session.updatedAt)) : null,
        ),
      ),
    );
    this.input.setAttribute("aria-activedescendant", `switch-${this.at}`);
  }
}
