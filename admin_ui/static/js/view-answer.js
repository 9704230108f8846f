// An agent's answer: name and time, then its blocks in order, then how it ended. Blocks are kept by their index, so that
// a growing text touches nothing but its own node.

import { h, setText } from "./dom.js";
import { duration, exactTime, messageTime, plural, tokens } from "./format.js";
import { segments } from "./layout.js";
import { TextView, ThinkingView } from "./view-text.js";
import { ToolView } from "./view-tool.js";

export class AnswerView {
  constructor({ markdown, findInput, resend }) {
    this.parts = { markdown, findInput };
    this.views = [];
    this.groups = new Map(); // first block index → the details element of a run of steps
    this.name = h("span", { class: "author" });
    this.time = h("time", {});
    this.usage = h("span", { class: "usage" });
    this.head = h("header", { class: "answer-head" }, this.name, this.time, this.usage);
    this.body = h("div", { class: "answer-body" });
    this.cut = h("span", { class: "cut" });
    this.again = h("button", { type: "button", class: "quiet-button", onclick: resend }, "Send the message again");
    this.foot = h("footer", { class: "answer-foot" }, this.cut, this.again);
    this.element = h("article", { class: "row answer" }, this.head, this.body, this.foot);
  }

  update(item) {
    const { row, blocks, inflight } = item;
    this.element.dataset.row = item.key;
    this.element.classList.toggle("deleted", Boolean(row.deleted));
    this.element.classList.toggle("streaming", inflight);
    this.head.hidden = item.continues;
    setText(this.name, row.agentName || "Agent");
    if (row.timestamp && this.at !== row.timestamp) {
      this.at = row.timestamp;
      setText(this.time, messageTime(row.timestamp));
      this.time.title = exactTime(row.timestamp);
    }
    this.updateBlocks(blocks, inflight);
    this.updateFoot(item);
  }

  updateBlocks(blocks, inflight) {
    this.views.length = Math.min(this.views.length, blocks.length);
    blocks.forEach((block, index) => {
      const finished = !inflight || index < blocks.length - 1;
      let entry = this.views[index];
      if (entry?.type !== block.type) entry = this.views[index] = { type: block.type, view: this.make(block.type) };
      if (entry.block === block && entry.finished === finished && entry.inflight === inflight) return;
      Object.assign(entry, { block, finished, inflight });
      entry.view.update(block, { finished, live: inflight, running: inflight });
    });
    this.place(segments(blocks, !inflight));
  }

  make(type) {
    if (type === "thinking") return new ThinkingView();
    return type === "tool_call" ? new ToolView(this.parts.findInput) : new TextView(this.parts.markdown);
  }

  place(found) {
    const nodes = found.map((segment) =>
      segment.kind === "steps" ? this.group(segment) : this.views[segment.indices[0]].view.element,
    );
    placeChildren(this.body, nodes);
  }

  group(segment) {
    const inside = segment.indices.map((index) => this.views[index].view.element);
    let group = this.groups.get(segment.indices[0]);
    if (!group) {
      group = h("details", { class: "steps" }, h("summary", {}), h("div", { class: "steps-body" }));
      group.open = inside.some((element) => element.open); // what the reader has open stays in sight
      this.groups.set(segment.indices[0], group);
    }
    const parts = [plural(segment.calls, "step")];
    if (segment.ms) parts.push(duration(segment.ms));
    if (segment.failed) parts.push(`${segment.failed} failed`);
    setText(group.firstChild, parts.join(" · "));
    group.classList.toggle("troubled", segment.failed > 0);
    placeChildren(group.lastChild, inside);
    return group;
  }

  updateFoot({ cut, resend, usage, row }) {
    setText(this.cut, [row.deleted ? "Deleted" : "", cut ?? ""].filter(Boolean).join(" · "));
    this.cut.hidden = !this.cut.textContent;
    this.again.hidden = !resend;
    setText(this.usage, usage ? `${tokens(usage.input)} in · ${tokens(usage.output)} out` : "");
    this.usage.title = usage
      ? `${usage.model}: ${usage.input.toLocaleString()} tokens in, ${usage.output.toLocaleString()} out, ${plural(usage.calls, "call")}`
      : "";
    this.foot.hidden = this.cut.hidden && this.again.hidden;
  }
}

/** Make `nodes` the children of `parent`, in order, moving only what is not yet in its place. */
export function placeChildren(parent, nodes) {
  let next = parent.firstChild;
  for (const node of nodes) {
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}
