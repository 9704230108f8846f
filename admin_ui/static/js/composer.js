// Where one writes: grows with its text, sends on Enter, keeps a draft per session, stops and interrupts.

import { Attachments } from "./attachments.js";
import { setSentence } from "./dom.js";
import { readDraft, writeDraft } from "./drafts.js";
import { Palette } from "./palette.js";

const MAX_HEIGHT = 0.4; // of the window

export class Composer {
  /** `actions`: {send(text, images), stop(), interrupt(), commands()} */
  constructor(root, actions) {
    this.actions = actions;
    this.text = root.querySelector("[data-composer]");
    this.sendButton = root.querySelector("[data-send]");
    this.stopButton = root.querySelector("[data-stop]");
    this.problem = root.querySelector("[data-composer-problem]");
    this.attachments = new Attachments(root, { onchange: () => this.refresh(), onproblem: (words) => this.explain(words) });
    this.palette = new Palette({
      field: this.text,
      list: root.querySelector("[data-palette]"),
      load: () => actions.commands(),
      complete: (text) => this.write(text),
    });
    this.place = null;
    this.text.addEventListener("input", () => this.typed());
    this.text.addEventListener("keydown", (event) => this.key(event));
    this.sendButton.addEventListener("click", () => this.send());
    this.stopButton.addEventListener("click", () => actions.stop());
    addEventListener("resize", () => this.fit());
    this.refresh();
  }

  /** The draft of the session that is open now takes the place of the other's. */
  open(place) {
    if (place === this.place) return;
    const early = this.place === null ? this.text.value : ""; // written while the scripts were still loading
    this.place = place;
    this.text.value = early || readDraft(place);
    this.attachments.clear();
    this.explain("");
    this.edited();
  }

  /** A new chat received its id: what is written stays. */
  rename(place) {
    writeDraft(this.place, "");
    this.place = place;
    writeDraft(place, this.text.value);
  }

  setRunning(running) {
    this.stopButton.hidden = !running;
    this.running = running;
  }

  edited() {
    writeDraft(this.place, this.text.value);
    this.fit();
    this.refresh();
  }

  typed() {
    this.edited();
    this.palette.edited();
  }

  /** What was chosen from a list. */
  write(text) {
    this.text.value = text;
    this.typed();
  }

  fit() {
    this.text.style.height = "auto";
    this.text.style.height = `${Math.min(this.text.scrollHeight, window.innerHeight * MAX_HEIGHT)}px`;
  }

  refresh() {
    this.sendButton.disabled = !this.text.value.trim() && !this.attachments.files.length;
  }

  key(event) {
    if (event.isComposing || event.keyCode === 229) return; // an input method is choosing characters
    if (this.palette.key(event)) return;
    if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      this.send();
    } else if (event.key === "Escape" && this.running) {
      event.preventDefault();
      this.actions.interrupt();
    }
  }

  send() {
    const text = this.text.value.trim();
    const images = this.attachments.files;
    if (!text && !images.length) return;
    if (!this.actions.send(text, images)) return;
    this.text.value = "";
    this.attachments.clear();
    this.explain("");
    this.typed();
    this.text.focus();
  }

  /** A refusal is explained where it was asked. */
  explain(words) {
    setSentence(this.problem, words);
    this.problem.hidden = !words;
  }
}
