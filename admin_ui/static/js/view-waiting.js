// A message that is not in the log yet: on its way, queued, or failed with its reason and a way to try again.

import { h, setSentence, setText } from "./dom.js";
import { plural } from "./format.js";

const WORDS = { sending: "Sending…", queued: "Queued" };

export class WaitingView {
  constructor({ actions }) {
    this.words = h("div", { class: "user-words" });
    this.note = h("span", { class: "waiting-note" });
    this.retry = h("button", { type: "button", class: "quiet-button", onclick: () => actions.retry(this.entry) }, "Try again");
    this.drop = h("button", { type: "button", class: "quiet-button", onclick: () => actions.drop(this.entry) }, "Discard");
    this.element = h("article", { class: "row user waiting" }, this.words, h("footer", {}, this.note, this.retry, this.drop));
  }

  update({ key, entry }) {
    this.entry = entry;
    const failed = entry.state === "failed";
    this.element.dataset.row = key;
    this.element.dataset.pending = entry.state;
    this.element.classList.toggle("failed", failed);
    setText(this.words, entry.text || plural(entry.images.length, "image"));
    // What the server holds it tries again by itself; what it never confirmed only this page can send again.
    const ours = failed && Boolean(entry.clientMsgId);
    setSentence(this.note, failed ? failure(entry, ours) : (WORDS[entry.state] ?? ""));
    this.retry.hidden = !ours;
    this.drop.hidden = !ours;
  }
}

function failure(entry, ours) {
  const reason = entry.error || "This message could not be delivered.";
  return ours ? reason : `${reason} It is kept, and tried again with your next message.`;
}

/** The chips above the composer: what waits behind the running answer. */
export function renderQueue(container, entries) {
  container.hidden = !entries.length;
  container.replaceChildren(
    ...entries.map((entry) =>
      h(
        "li",
        { class: "chip", dataset: { queued: entry.key }, title: entry.text },
        h("span", { class: "chip-text" }, entry.text || plural(entry.images.length, "image")),
        h("span", { class: "chip-note" }, entry.state === "sending" ? "sending" : "next"),
      ),
    ),
  );
}
