// One block of words: plain where it still grows, markdown where it is finished. And one block of thinking.

import { h, setText } from "./dom.js";
import { duration } from "./format.js";

export class TextView {
  constructor(markdown) {
    this.markdown = markdown;
    this.tail = document.createTextNode("");
    this.element = h("div", { class: "prose plain", dataset: { block: "text" } }, this.tail);
    this.text = "";
    this.done = 0; // how much of the text stands in finished paragraphs
    this.shown = null; // the whole text whose HTML is shown
  }

  update(block, { finished }) {
    if (!block.text.startsWith(this.text) || (!finished && this.shown !== null)) this.restart();
    this.text = block.text;
    if (finished) this.finish(block.text);
    else this.stream(block.text);
  }

  /** Paragraphs that are complete become markdown at once; the rest grows in its own text node. */
  stream(text) {
    const cut = this.done + finishedLength(text.slice(this.done));
    if (cut > this.done) {
      const part = h("div", { class: "prose part plain" }, text.slice(this.done, cut).trimEnd());
      this.tail.before(part);
      this.tail.data = "";
      this.markdown.want(text.slice(this.done, cut), (html) => show(part, html));
      this.done = cut;
    }
    grow(this.tail, text.slice(this.done));
  }

  finish(text) {
    if (this.shown === text) return;
    grow(this.tail, text.slice(this.done));
    this.markdown.want(text, (html) => {
      if (this.text !== text || this.shown === text) return;
      this.shown = text;
      show(this.element, html);
    });
  }

  restart() {
    this.done = 0;
    this.shown = null;
    this.tail.data = "";
    this.element.classList.add("plain");
    this.element.replaceChildren(this.tail);
  }
}

/** How much of a growing text is whole paragraphs: up to the last blank line outside of a code fence, provided that what
 *  follows has begun and does not belong to a list item before it. */
export function finishedLength(text) {
  let length = 0;
  let at = 0;
  let fence = null;
  const lines = text.split("\n");
  for (let index = 0; index < lines.length - 1; index += 1) {
    const line = lines[index];
    at += line.length + 1;
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence === null) fence = mark ?? null;
    else if (mark?.startsWith(fence) && line.trim() === mark) fence = null;
    if (fence === null && !line.trim() && /^\S/.test(lines[index + 1])) length = at;
  }
  return length;
}

/** Put HTML that the server cleaned into an element; the page's policy would refuse scripts anyway. */
function show(element, html) {
  element.classList.remove("plain");
  element.innerHTML = html;
  for (const code of element.querySelectorAll(".code")) code.prepend(codeBar(code));
  for (const table of element.querySelectorAll("table")) {
    const frame = h("div", { class: "table", tabindex: "0" });
    table.replaceWith(frame);
    frame.append(table);
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
