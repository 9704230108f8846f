// The conversation: rows in order, each drawn once and then only where it changed. Keyed by row id.

import { h, iconButton, setSentence, setText } from "./dom.js";
import { exactTime, messageTime } from "./format.js";
import { layout } from "./layout.js";
import { AnswerView, placeChildren } from "./view-answer.js";
import { WaitingView } from "./view-waiting.js";

class UserView {
  constructor({ actions }) {
    this.remove = iconButton("trash", "Delete this exchange", () => actions.deleteExchange(this.row));
    this.words = h("div", { class: "user-words" });
    this.time = h("time", {});
    this.tag = h("span", { class: "cut" }, "Deleted");
    this.element = h("article", { class: "row user" }, this.words, h("footer", {}, this.tag, this.time, this.remove));
  }

  update({ row, key }) {
    this.row = row;
    this.remove.hidden = Boolean(row.deleted || row.archived);
    this.element.dataset.row = key;
    this.element.classList.toggle("deleted", Boolean(row.deleted));
    this.tag.hidden = !row.deleted;
    setText(this.words, row.content);
    setText(this.time, messageTime(row.timestamp));
    this.time.title = exactTime(row.timestamp);
  }
}

class NoticeView {
  constructor() {
    this.element = h("p", { class: "row notice" });
  }

  update({ row, key, tone, text }) {
    this.element.dataset.row = key;
    this.element.classList.toggle("error", tone === "error");
    setSentence(this.element, text);
    this.element.title = exactTime(row.timestamp);
  }
}

class SummaryView {
  constructor({ markdown }) {
    this.markdown = markdown;
    this.body = h("div", { class: "prose plain" });
    this.element = h("details", { class: "row summary" }, h("summary", {}, "Earlier conversation, summarised"), this.body);
  }

  update({ row, key }) {
    this.element.dataset.row = key;
    setText(this.body, row.content);
    this.markdown.want(row.content, (html) => {
      this.body.classList.remove("plain");
      this.body.innerHTML = html;
    });
  }
}

/** What another session said to this one: a sub-agent's report, a question of the agent above. */
class ReportView {
  constructor({ markdown }) {
    this.markdown = markdown;
    this.label = h("summary", {});
    this.body = h("div", { class: "prose plain" });
    this.element = h("details", { class: "row summary report" }, this.label, this.body);
  }

  update({ row, key, label, text }) {
    this.element.dataset.row = key;
    this.element.title = exactTime(row.timestamp);
    this.element.classList.toggle("deleted", Boolean(row.deleted));
    setText(this.label, label);
    setText(this.body, text);
    this.markdown.want(text, (html) => {
      this.body.classList.remove("plain");
      this.body.innerHTML = html;
    });
  }
}

/** The answer to a command, below what was typed: said to this page alone, and gone with it. */
class NoteView {
  constructor({ markdown }) {
    this.markdown = markdown;
    this.command = h("p", { class: "note-command", dataset: { noteCommand: "" } });
    this.body = h("div", { class: "prose plain", role: "status", dataset: { note: "" } });
    this.element = h("div", { class: "row notice note" }, this.command, this.body);
  }

  update({ key, note }) {
    this.element.dataset.row = key;
    setText(this.command, note.command ?? "");
    this.command.hidden = !note.command;
    setText(this.body, note.text);
    this.markdown.want(note.text, (html) => {
      this.body.classList.remove("plain");
      this.body.innerHTML = html;
    });
  }
}

const VIEWS = {
  user: UserView,
  answer: AnswerView,
  notice: NoticeView,
  summary: SummaryView,
  report: ReportView,
  note: NoteView,
  waiting: WaitingView,
};

export class ConversationView {
  /** `actions`: {resend(), deleteExchange(row), retry(entry), drop(entry)} */
  constructor(list, { markdown, actions }) {
    this.list = list;
    this.drawn = new Map(); // key → {kind, view, item}
    this.state = null;
    this.parts = { markdown, actions, resend: () => actions.resend(), findInput: (id) => this.findInput(id) };
  }

  /** `waiting`: messages that stand at the end of the conversation until their row comes. `notes`: see session.js. */
  render(state, waiting, notes = []) {
    this.state = state;
    const items = withNotes(this.itemsOf(state), notes);
    const shown = [...items, ...waiting.map((entry) => ({ key: entry.key, kind: "waiting", entry }))];
    const drawn = new Map();
    for (const item of shown) drawn.set(item.key, this.draw(item));
    this.drawn = drawn;
    placeChildren(this.list, shown.map((item) => drawn.get(item.key).view.element));
  }

  /** The layout, made again only for what changed: a growing answer leaves the rows before it alone. */
  itemsOf(state) {
    const last = this.laidOut;
    if (last && last.rows === state.rows && last.inflight === state.inflight && last.running === state.running) {
      return this.items;
    }
    this.laidOut = state;
    this.items = layout(state);
    return this.items;
  }

  draw(item) {
    let entry = this.drawn.get(item.key);
    if (entry?.kind !== item.kind) entry = { kind: item.kind, view: new VIEWS[item.kind](this.parts) };
    if (!sameItem(entry.item, item)) entry.view.update(item);
    entry.item = item;
    return entry;
  }

  findInput(toolUseId) {
    if (!toolUseId) return null;
    const row = this.state.rows.find((one) => one.type === "tool_call" && one.toolUseId === toolUseId);
    return row?.toolInput ?? null;
  }
}

/** Each note behind the last of the items that were there before it. */
function withNotes(items, notes) {
  if (!notes.length) return items;
  const all = items.slice();
  for (const note of notes) {
    const at = all.findLastIndex((item) => item.kind === "note" || note.after?.has(item.key));
    all.splice(at + 1, 0, { key: note.key, kind: "note", note });
  }
  return all;
}

function sameItem(had, item) {
  if (!had) return false;
  if (item.kind === "note") return had.note === item.note;
  if (item.kind === "waiting") return had.entry === item.entry;
  return (
    had.row === item.row &&
    had.inflight === item.inflight &&
    had.cut === item.cut &&
    had.continues === item.continues &&
    had.usage?.calls === item.usage?.calls
  );
}
