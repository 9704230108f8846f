// One tool call: a line (name, the argument that matters, a state dot, duration) that opens to its input and output.
// What is inside is made when it is first opened: a session may hold hundreds of long outputs.

import { h, setText } from "./dom.js";
import { duration } from "./format.js";
import { mainArgument, readableInput, readOutput } from "./layout.js";

const CUT_LINES = 40;
const CUT_CHARS = 8000;
const WORDS = {
  running: "running",
  ok: "done",
  error: "failed",
  warn: "done with a warning",
  interrupted: "interrupted",
};

export class ToolView {
  /** `findInput(toolUseId)` gives the whole input of a call, when the page has it. */
  constructor(findInput) {
    this.findInput = findInput;
    this.dot = h("span", { class: "dot" });
    this.name = h("span", { class: "tool-name" });
    this.argument = h("span", { class: "tool-argument" });
    this.time = h("span", { class: "tool-time" });
    this.trouble = h("span", { class: "tool-trouble" });
    this.body = h("div", { class: "tool-body" });
    const line = h("span", { class: "tool-line" }, this.dot, this.name, this.argument, this.time);
    this.element = h("details", { class: "tool", dataset: { block: "tool_call" } });
    this.element.append(h("summary", {}, line, this.trouble), this.body);
    this.element.addEventListener("toggle", () => this.fill());
  }

  update(block, { running }) {
    const call = block.toolCall;
    if (call === this.call && running === this.wasRunning) return;
    this.call = call;
    this.wasRunning = running;
    const { state, text } = readOutput(call.output);
    this.state = state === "running" && !running ? "interrupted" : state;
    this.output = text;
    this.element.dataset.toolState = this.state;
    setText(this.name, call.name);
    const argument = mainArgument(call.input);
    setText(this.argument, argument);
    this.argument.title = argument;
    setText(this.time, call.durationMs === undefined ? "" : duration(call.durationMs));
    setText(this.trouble, this.state === "error" || this.state === "warn" ? firstLine(text) : "");
    this.dot.title = WORDS[this.state];
    this.dot.setAttribute("role", "img");
    this.dot.setAttribute("aria-label", WORDS[this.state]);
    this.filledFor = null;
    this.fill();
  }

  fill() {
    if (!this.element.open || this.filledFor === this.call) return;
    this.filledFor = this.call;
    const input = readableInput(this.findInput(this.call.toolUseId) ?? this.call.input);
    const parts = [section("Input", input)];
    if (this.state === "running") parts.push(h("p", { class: "tool-waiting" }, "Running; its output comes when it ends."));
    else if (this.output) parts.push(section("Output", this.output));
    else parts.push(h("p", { class: "tool-waiting" }, this.state === "ok" ? "No output." : "Cut off before its output came."));
    this.body.replaceChildren(...parts);
  }
}

function firstLine(text) {
  const end = text.indexOf("\n");
  return (end < 0 ? text : text.slice(0, end)).slice(0, 200);
}

function section(title, text) {
  const pre = h("pre", { tabindex: "0", "aria-label": title });
  const part = h("section", {}, h("h4", {}, title), pre);
  const short = shortened(text);
  pre.textContent = short.text;
  if (short.rest) {
    const all = h("button", { type: "button", class: "quiet-button" }, `Show all (${short.rest})`);
    all.addEventListener("click", () => {
      pre.textContent = text;
      all.remove();
    });
    part.append(all);
  }
  return part;
}

/** The first forty lines; `rest` says how much more there is, null when that is all. */
export function shortened(text) {
  const lines = text.replace(/\n$/, "").split("\n");
  const head = lines.slice(0, CUT_LINES).join("\n");
  if (head.length > CUT_CHARS) {
    return { text: `${head.slice(0, CUT_CHARS)}…`, rest: `${text.length.toLocaleString()} characters` };
  }
  return { text: head, rest: lines.length > CUT_LINES ? `${lines.length.toLocaleString()} lines` : null };
}
