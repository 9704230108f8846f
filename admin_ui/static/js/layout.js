// From rows to what a reader sees, in order: words, answers, notices. Pure; the views draw what comes out.

const CUT_MARKS = {
  "[This reply was interrupted by the user.]": "Interrupted by you",
  "[This reply was cut off by an error.]": "Cut off by an error",
  "[This reply was cut off by a server restart.]": "Cut off by a server restart",
};
const SUMMARY_PREFIX = "[Conversation Summary — ";
const SENDER = /^\(from: session ([^)]*)\)\n/;
const SYSTEM_PREFIX = "[System] ";
// What is told to the agent beside a report; a person is told the same in short.
const SIBLINGS = [
  [/^\[System @ [^\]]*\] All sub-agents /, "All sub-agents have reported."],
  [/^\[System @ [^\]]*\] Do NOT wrap up yet/, "Other sub-agents are still at work."],
];
export const GROUPED_CALLS = 3; // a run of fewer calls is shown as it is

/** The items of a session, keyed by row id. An item: {key, kind, row, …}; kinds: user, answer, notice, summary, report. */
export function layout(state) {
  const items = [];
  let begun = []; // tasks that the reply being made gave to sub-agents: they stand behind it
  let usage = null;
  const names = new Map(); // of sub-agents, by the id of their session
  for (const row of state.rows) {
    if (row.taskId) names.set(row.taskId, row.agentName);
    if (row.type === "agent_start") {
      begun.push({ key: row.id, row, kind: "notice", tone: "quiet", text: `${row.agentName} ← ${row.content}` });
      continue;
    }
    if (row.taskId && row.taskId !== state.sessionId) continue; // a 1.x sub-agent's row; it has a session of its own
    if (row.type === "usage") usage = addUsage(usage, row);
    const item = itemOf(row, names);
    if (!item) continue;
    if (item.kind === "answer") item.usage = usage;
    if (item.kind !== "notice") usage = null;
    if (item.kind === "notice") {
      items.push(item);
      continue;
    }
    items.push(...(item.kind === "answer" ? [item, ...begun] : [...begun, item]));
    begun = [];
  }
  if (state.inflight) items.push(inflightItem(state));
  items.push(...begun);
  markContinued(items);
  return items;
}

function itemOf(row, names) {
  const base = { key: row.id, row };
  if (row.type === "user") return userItem(base, names);
  if (row.type === "assistant") return { ...base, kind: "answer", ...cutOf(blocksOf(row)), inflight: false };
  if (row.type === "notification") {
    const failed = row.content.startsWith("Error: ");
    const short = SIBLINGS.find(([pattern]) => pattern.test(row.content))?.[1];
    return { ...base, kind: "notice", tone: failed ? "error" : "quiet", text: short ?? row.content.replace(/^Error: /, "") };
  }
  return null;
}

function userItem(base, names) {
  const { content } = base.row;
  const sender = SENDER.exec(content);
  if (sender) {
    const name = names.get(sender[1]);
    const label = name ? `From ${name}` : "From another session";
    return { ...base, kind: "report", label, text: content.slice(sender[0].length) };
  }
  if (base.row.compactSummary || content.startsWith(SUMMARY_PREFIX)) return { ...base, kind: "summary" };
  if (content.startsWith(SYSTEM_PREFIX)) {
    return { ...base, kind: "notice", tone: "quiet", text: content.slice(SYSTEM_PREFIX.length) };
  }
  return { ...base, kind: "user" };
}

function inflightItem(state) {
  const row = state.inflight;
  const blocks = blocksOf(row);
  const cut = state.running ? null : "Interrupted";
  return { key: row.id, kind: "answer", row, blocks, cut, resend: Boolean(cut), inflight: state.running, usage: null };
}

/** Two answers of one agent in a row need its name once. */
function markContinued(items) {
  items.forEach((item, at) => {
    const before = items[at - 1];
    item.continues =
      item.kind === "answer" && before?.kind === "answer" && before.row.agentName === item.row.agentName;
  });
}

/** The blocks of an answer, also of rows from before blocks existed. */
export function blocksOf(row) {
  if (row.contentBlocks?.length) return row.contentBlocks;
  const calls = (row.toolCalls ?? []).map((toolCall) => ({ type: "tool_call", toolCall }));
  return row.content ? [...calls, { type: "text", text: row.content }] : calls;
}

/** The blocks without the engine's closing mark, and what the mark says. */
function cutOf(blocks) {
  const last = blocks[blocks.length - 1];
  if (last?.type !== "text") return { blocks, cut: null };
  for (const [mark, words] of Object.entries(CUT_MARKS)) {
    if (!last.text.endsWith(mark)) continue;
    const text = last.text.slice(0, -mark.length).trimEnd();
    const kept = blocks.slice(0, -1);
    return { blocks: text ? [...kept, { ...last, text }] : kept, cut: words };
  }
  return { blocks, cut: null };
}

function addUsage(sum, row) {
  const usage = row.usage ?? {};
  const cached = (usage.cacheReadInputTokens ?? 0) + (usage.cacheWriteInputTokens ?? 0);
  return {
    input: (sum?.input ?? 0) + (usage.inputTokens ?? 0) + cached,
    output: (sum?.output ?? 0) + (usage.outputTokens ?? 0),
    calls: (sum?.calls ?? 0) + 1,
    model: row.modelId ?? sum?.model ?? "",
  };
}

/** Runs of blocks: {kind: "block", indices: [i]} or, once finished, {kind: "steps", indices, calls, failed, ms}. */
export function segments(blocks, finished) {
  const found = [];
  let run = [];
  const close = () => {
    found.push(...(finished ? runSegments(blocks, run) : run.map(single)));
    run = [];
  };
  blocks.forEach((block, index) => {
    if (block.type !== "text") return run.push(index);
    close();
    return found.push(single(index));
  });
  close();
  return found;
}

const single = (index) => ({ kind: "block", indices: [index] });

function runSegments(blocks, run) {
  const calls = run.map((index) => blocks[index].toolCall).filter(Boolean);
  if (calls.length < GROUPED_CALLS) return run.map(single);
  const failed = calls.filter((call) => !["ok", "warn"].includes(readOutput(call.output).state)).length;
  const ms = calls.reduce((sum, call) => sum + (call.durationMs ?? 0), 0);
  return [{ kind: "steps", indices: run, calls: calls.length, failed, ms }];
}

/** What a tool's output says: its state, and its text without the marks that only colour it. */
export function readOutput(output) {
  if (output === undefined || output === null) return { state: "running", text: "" };
  if (/^\[interrupted by /.test(output)) return { state: "interrupted", text: output };
  const marked = /^__TOOL_(ERROR|WARN)__\n?/.exec(output);
  if (!marked) return { state: "ok", text: output };
  return { state: marked[1] === "ERROR" ? "error" : "warn", text: output.slice(marked[0].length) };
}

const TELLING = ["path", "command", "pattern", "url", "query", "message", "title", "content", "id"];

/** The one argument that matters, on one line. `input` is the call's text: an argument, or all of them as JSON. */
export function mainArgument(input) {
  let text = input ?? "";
  if (text.startsWith("{")) {
    try {
      text = telling(JSON.parse(text)) ?? "";
    } catch {
      // An argument that only looks like JSON is shown as it is.
    }
  }
  return text.replace(/\s+/g, " ").trim().slice(0, 240);
}

function telling(args) {
  const key = TELLING.find((name) => typeof args[name] === "string" && args[name]);
  if (key) return args[key];
  const first = Object.values(args).find((value) => ["string", "number", "boolean"].includes(typeof value));
  return first === undefined ? null : String(first);
}

/** All arguments of a call for reading: a single text as it is, otherwise one per paragraph. */
export function readableInput(input) {
  if (typeof input === "string") return input;
  const entries = Object.entries(input ?? {});
  if (entries.length === 1 && typeof entries[0][1] === "string") return entries[0][1];
  return entries
    .map(([name, value]) => {
      const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
      return text.includes("\n") ? `${name}:\n${text}` : `${name}: ${text}`;
    })
    .join("\n");
}
