// What `/` in the composer offers: the commands that can be used here, then the verbs of the one that was written. And
// `@` at the end of a message: the marker of a folder.
// The field keeps the focus; a screen reader is told of the option at hand by `aria-activedescendant`.

import { get } from "./api.js";
import { h } from "./dom.js";

const SHOWN = 50;
const COMMAND = /^\/(\S*)$/;
const MARKER = /(^|\s)@(s|sc|sco|scop|scope)?$/i;
const SCOPE = { name: "@scope", description: "The instructions of a folder, for this message: @scope <folder>", more: "" };
const VERB = /^\/(\S+)[ \t]+(\S*)$/;

/** The commands that can be used in a session, or with an agent in one to come. */
export async function loadCommands(workspace, sessionId, agentId) {
  return (await get("commands", { projectId: workspace, sessionId, agentId })).commands;
}

export class Palette {
  /** `load()` resolves with the commands: [{name, description, verbs}]. `complete(text)` puts a choice into the field. */
  constructor({ field, list, load, complete }) {
    Object.assign(this, { field, list, load, complete });
    this.commands = [];
    this.options = []; // {text, name, description, more}
    this.at = 0;
    this.dismissed = null; // the text at which a person closed the list
    this.asked = 0;
    field.setAttribute("aria-autocomplete", "list");
    field.setAttribute("aria-controls", list.id);
    field.addEventListener("blur", () => this.close());
    list.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
  }

  get open() {
    return !this.list.hidden;
  }

  /** After every change of the text. */
  edited() {
    const text = this.field.value;
    const command = text.startsWith("/");
    if (!command && !MARKER.test(text)) {
      this.began = false;
      this.dismissed = null;
      return this.close();
    }
    if (command && !this.began) {
      this.began = true;
      this.refresh();
    }
    return this.draw(0);
  }

  /** Skills and agents change while a page is open: asked for each time somebody begins a command. */
  async refresh() {
    const asked = (this.asked += 1);
    try {
      const commands = await this.load();
      if (asked !== this.asked) return;
      this.commands = commands;
      if (document.activeElement === this.field) this.draw(this.at);
    } catch {
      this.commands = []; // nothing is offered; what is written still works
    }
  }

  /** True when the key was meant for the list. */
  key(event) {
    if (!this.open || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return false;
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps) this.draw((this.at + steps[event.key] + this.options.length) % this.options.length);
    else if (event.key === "Escape") this.dismiss();
    else if (event.key === "Tab") this.choose(this.at);
    else if (event.key === "Enter" && !this.isWritten(this.options[this.at])) this.choose(this.at);
    else return false;
    event.preventDefault();
    return true;
  }

  choose(at) {
    const { text } = this.options[at];
    this.dismissed = null;
    this.complete(text);
  }

  dismiss() {
    this.dismissed = this.field.value;
    this.close();
  }

  close() {
    this.list.hidden = true;
    this.field.removeAttribute("aria-activedescendant");
  }

  /** A command that stands there whole is sent by Enter, not completed once more. */
  isWritten(option) {
    return option.text.trim() === this.field.value.trim().toLowerCase() && !option.more;
  }

  draw(at) {
    const text = this.field.value;
    this.options = text === this.dismissed ? [] : offered(this.commands, text);
    if (!this.options.length) return this.close();
    this.at = Math.min(at, this.options.length - 1);
    this.list.replaceChildren(...this.options.map((option, place) => this.drawOption(option, place)));
    this.list.hidden = false;
    this.field.setAttribute("aria-activedescendant", `command-${this.at}`);
    this.list.children[this.at].scrollIntoView({ block: "nearest" });
    return undefined;
  }

  drawOption({ name, description, more }, place) {
    return h(
      "li",
      {
        role: "option",
        id: `command-${place}`,
        "aria-selected": String(place === this.at),
        dataset: { command: name },
        onclick: () => this.choose(place),
      },
      h("span", { class: "palette-name" }, name),
      h("span", { class: "palette-words" }, description),
      more ? h("span", { class: "palette-more" }, more) : null,
    );
  }
}

/** What can be written on from `text`: {text, name, description, more}. Pure. */
export function offered(commands, text) {
  const marker = MARKER.exec(text);
  if (marker) return [{ ...SCOPE, text: `${text.slice(0, marker.index)}${marker[1]}@scope ` }];
  const command = COMMAND.exec(text);
  if (command) {
    return matching(commands, command[1], (one) => one.name.slice(1)).map((one) => ({
      text: `${one.name} `,
      name: one.name,
      description: one.description,
      more: one.verbs.map((verb) => verb.name).join(" · "),
    }));
  }
  const verb = VERB.exec(text);
  const owner = verb && commands.find((one) => one.name === `/${verb[1].toLowerCase()}`);
  if (!owner) return [];
  return matching(owner.verbs, verb[2], (one) => one.name).map((one) => ({
    text: `${owner.name} ${one.name} `,
    name: `${owner.name} ${one.name}`,
    description: one.description,
    more: "",
  }));
}

/** Those that begin with what is written; only where none does, those that hold it. */
function matching(all, written, nameOf) {
  const wanted = written.toLowerCase();
  const begin = all.filter((one) => nameOf(one).toLowerCase().startsWith(wanted));
  const found = begin.length ? begin : all.filter((one) => nameOf(one).toLowerCase().includes(wanted));
  return found.slice(0, SHOWN);
}
