// One block of words: plain and growing while it streams, markdown once it is finished. And one block of thinking.

import { h, setText } from "./dom.js";
import { duration } from "./format.js";

export class TextView {
  constructor(markdown) {
    this.markdown = markdown;
    this.node = document.createTextNode("");
    this.element = h("div", { class: "prose plain", dataset: { block: "text" } }, this.node);
    this.shown = null; // the text whose HTML is shown
  }

  update(block, { finished }) {
    if (finished) return this.finish(block.text);
    if (this.shown !== null) this.plain();
    grow(this.node, block.text);
    return undefined;
  }

  finish(text) {
    if (this.shown === text) return;
    if (this.shown === null) grow(this.node, text);
    this.wanted = text;
    this.markdown.want(text, (html) => {
      if (this.wanted === text) this.html(text, html);
    });
  }

  html(text, html) {
    this.shown = text;
    this.element.classList.remove("plain");
    this.element.innerHTML = html; // cleaned by the server; the page's policy would refuse scripts anyway
    for (const code of this.element.querySelectorAll(".code")) code.prepend(codeBar(code));
    for (const table of this.element.querySelectorAll("table")) {
      const frame = h("div", { class: "table", tabindex: "0" });
      table.replaceWith(frame);
      frame.append(table);
    }
  }

  plain() {
    this.shown = null;
    this.wanted = null;
    this.element.classList.add("plain");
    this.element.replaceChildren(this.node);
  }
}

/** Make a text node hold `text`, adding only the tail when it grew: nothing else on the page is laid out anew. */
function grow(node, text) {
  if (text.startsWith(node.data)) {
    if (text.length > node.data.length) node.appendData(text.slice(node.data.length));
  } else {
    node.data = text;
  }
}

function codeBar(code) {
  const copy = h("button", { type: "button", class: "quiet-button" }, "Copy");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.querySelector("code").textContent);
      setText(copy, "Copied");
    } catch {
      setText(copy, "Copying was refused");
    }
    setTimeout(() => setText(copy, "Copy"), 1500);
  });
  return h("div", { class: "code-bar" }, h("span", {}, code.dataset.language || "text"), copy);
}

export class ThinkingView {
  constructor() {
    this.node = document.createTextNode("");
    this.label = h("span", {}, "Thinking");
    this.element = h(
      "details",
      { class: "thinking", dataset: { block: "thinking" } },
      h("summary", {}, this.label),
      h("div", { class: "thinking-text" }, this.node),
    );
    this.startedAt = null;
  }

  update(block, { finished, live }) {
    grow(this.node, block.text.trim());
    if (!finished) {
      if (live) this.startedAt ??= Date.now();
      setText(this.label, "Thinking…");
    } else if (!this.done) {
      this.done = true;
      setText(this.label, this.startedAt ? `Thought for ${duration(Date.now() - this.startedAt)}` : "Thought");
    }
  }
}
