// The list column: the workspace's sessions, newest activity first; open, rename, delete.

import { get, request } from "./api.js";
import { confirmDialog } from "./dialogs.js";
import { h, iconButton, setText } from "./dom.js";
import { exactTime, shortTime } from "./format.js";
import { placeChildren } from "./view-answer.js";

const PAGE = 50;
const COLLECT_MS = 250;

export class SessionList {
  /** `actions`: {open(id), closed(id), loaded()} */
  constructor(root, actions) {
    this.actions = actions;
    this.list = root.querySelector("[data-session-list]");
    this.note = root.querySelector("[data-list-note]");
    this.more = root.querySelector("[data-list-more]");
    this.more.addEventListener("click", () => this.load(this.cursor));
    this.sessions = [];
    this.items = new Map();
    this.workspace = null;
    this.current = null;
  }

  open(workspace, current) {
    this.current = current;
    if (workspace === this.workspace) return this.draw();
    this.workspace = workspace;
    this.sessions = [];
    this.list.replaceChildren(...Array.from({ length: 4 }, () => h("li", { class: "session-blank", "aria-hidden": "true" })));
    this.explain("");
    return this.load();
  }

  titleOf(id) {
    return this.sessions.find((one) => one.id === id)?.title ?? "";
  }

  /** Something changed somewhere: ask once for many hints. */
  refreshSoon() {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.load();
    }, COLLECT_MS);
  }

  async load(cursor) {
    const { workspace } = this;
    const limit = cursor ? PAGE : Math.max(PAGE, this.sessions.length);
    try {
      const page = await get("sessions/logs", { projectId: workspace, rootOnly: 1, limit, cursor });
      if (workspace !== this.workspace) return;
      const known = new Set(cursor ? this.sessions.map((one) => one.id) : []);
      this.sessions = cursor ? [...this.sessions, ...page.sessions.filter((one) => !known.has(one.id))] : page.sessions;
      this.cursor = page.nextCursor;
      this.draw();
      this.actions.loaded();
    } catch (error) {
      if (workspace === this.workspace) this.failed(error);
    }
  }

  failed(error) {
    if (!this.sessions.length) this.list.replaceChildren();
    const again = h("button", { type: "button", class: "button" }, "Try again");
    again.addEventListener("click", () => this.load());
    this.explain(error.message, again);
  }

  explain(words, ...more) {
    this.note.replaceChildren(words, ...more);
    this.note.hidden = !words;
  }

  draw() {
    const { sessions } = this;
    this.explain(sessions.length ? "" : "No sessions yet. Write below to begin the first one.");
    const items = new Map();
    for (const session of sessions) {
      const item = this.items.get(session.id) ?? new SessionItem(this, session.id);
      item.update(session, session.id === this.current);
      items.set(session.id, item);
    }
    this.items = items;
    placeChildren(this.list, [...items.values()].map((item) => item.element));
    this.more.hidden = !this.cursor;
  }

  async rename(session, title) {
    const id = encodeURIComponent(session.id);
    await request("PATCH", `sessions/logs/${id}`, { query: { projectId: this.workspace }, body: { title } });
    this.load();
  }

  async remove(session) {
    const id = encodeURIComponent(session.id);
    const gone = await confirmDialog({
      title: "Delete this session?",
      text: `“${session.title || "Untitled"}” and everything its agents wrote in it will be deleted. This cannot be undone.`,
      action: "Delete",
      run: () => request("DELETE", `sessions/logs/${id}`, { query: { projectId: this.workspace } }),
    });
    if (!gone) return;
    this.sessions = this.sessions.filter((one) => one.id !== session.id);
    this.draw();
    this.actions.closed(session.id);
  }
}

class SessionItem {
  constructor(list, id) {
    this.list = list;
    this.title = h("span", { class: "session-title" });
    this.time = h("time", {});
    this.dot = h("span", { class: "dot", role: "img", "aria-label": "running", title: "running" });
    this.link = h("a", { class: "session-link" }, this.dot, this.title, this.time);
    this.link.addEventListener("click", (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return; // another tab, as the browser does it
      event.preventDefault();
      list.actions.open(id);
    });
    this.tools = h(
      "span",
      { class: "session-tools" },
      iconButton("pencil", "Rename", () => this.edit()),
      iconButton("trash", "Delete", () => list.remove(this.session)),
    );
    this.element = h("li", { class: "session", dataset: { sessionItem: id } }, this.link, this.tools);
  }

  update(session, current) {
    this.session = session;
    const query = new URLSearchParams({ workspace: this.list.workspace, session: session.id });
    this.link.href = `/chat?${query}`;
    setText(this.title, session.title || "Untitled");
    this.link.title = session.title || "";
    setText(this.time, shortTime(session.updatedAt));
    this.time.title = exactTime(session.updatedAt);
    this.dot.hidden = session.status !== "running";
    this.element.classList.toggle("current", current);
    if (current) this.link.setAttribute("aria-current", "page");
    else this.link.removeAttribute("aria-current");
  }

  edit() {
    const input = h("input", { class: "field", value: this.session.title, "aria-label": "New title", maxlength: "200" });
    let done = false;
    const finish = async (save) => {
      if (done) return;
      done = true;
      const title = input.value.trim();
      input.replaceWith(this.link);
      if (!save || !title || title === this.session.title) return this.link.focus();
      setText(this.title, title);
      try {
        await this.list.rename(this.session, title);
      } catch (error) {
        setText(this.title, this.session.title || "Untitled");
        this.list.explain(error.message);
      }
      return undefined;
    };
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter") finish(true);
      if (event.key === "Escape") finish(false);
    });
    input.addEventListener("blur", () => finish(true));
    this.link.replaceWith(input);
    input.focus();
    input.select();
  }
}
