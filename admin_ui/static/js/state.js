// The page's picture of one session, folded from snapshots and frames. Pure: no DOM, no socket, no clock; every function
// returns a new state and leaves the old one as it was, so a view can see what changed by comparing references.
//
// Frames are idempotent: applying one twice, or over a snapshot that already holds it, changes nothing. When something
// is missing the state becomes `stale`; the caller then asks for a snapshot, and frames are ignored until it comes.

/** An empty session; also what a new chat looks like before its first word. */
export function emptyState(sessionId = null) {
  return {
    sessionId,
    seq: null, // number of the last frame applied; null: any number may come next
    rows: [],
    inflight: null, // the reply being made, as a row; its `content` is the text of its text blocks
    pending: [], // what was sent and has not entered the log: {rowId, text, images, stamp, state, error?}
    running: false,
    agents: [], // sub-agents at work: {sessionId, agentName}
    hasOlder: false,
    archives: 0, // archived parts before the oldest row here; the last of them is the next one to load
    agentId: null,
    agentName: "",
    title: "",
    contextTokens: 0,
    outputTokens: 0,
    maxContextTokens: 0,
    stale: false,
    deleted: false,
    loaded: false, // a snapshot has been seen
    problems: [], // refusals and faults that belong to no row: {error, code}
  };
}

/** The state after one frame. Returns the same object when the frame changes nothing. */
export function apply(state, frame) {
  if (frame.type === "state:snapshot") return applySnapshot(state, frame.snapshot);
  if (frame.sessionId && frame.sessionId !== state.sessionId) return state;
  if (frame.type === "listener:released") return { ...state, stale: true };
  if (frame.seq === undefined) return applyUnnumbered(state, frame);
  if (state.stale || (state.seq !== null && frame.seq <= state.seq)) return state;
  if (state.seq !== null && frame.seq > state.seq + 1) return { ...state, stale: true };
  const handle = NUMBERED[frame.type];
  const next = handle ? handle(state, frame) : state;
  return next.stale ? next : { ...next, seq: frame.seq };
}

/** Every row as a reader sees it now: the finished ones, then the one in flight. */
export function allRows(state) {
  return state.inflight ? [...state.rows, state.inflight] : state.rows;
}

/** Older rows, fetched when the reader scrolls up, put in front. */
export function prependRows(state, rows, hasOlder, archives = state.archives) {
  const known = new Set(state.rows.map((row) => row.id));
  return { ...state, rows: [...rows.filter((row) => !known.has(row.id)), ...state.rows], hasOlder, archives };
}

/** One archived part, put in front: it is complete and can only be read. */
export function prependArchive(state, rows, number) {
  if (number !== state.archives) return state;
  const archived = rows.map((row) => ({ ...row, archived: true }));
  return { ...prependRows(state, archived, false), archives: number - 1 };
}

/** What this page sent and the server took, before its own frame about it comes. */
export function addPending(state, entry) {
  if (knows(state, entry.rowId) || state.pending.some((one) => one.rowId === entry.rowId)) return state;
  return { ...state, pending: [...state.pending, { state: "queued", images: [], ...entry }] };
}

export function clearProblems(state) {
  return state.problems.length ? { ...state, problems: [] } : state;
}

// -- snapshots --------------------------------------------------------------------------------------------------------

function applySnapshot(state, snapshot) {
  if (snapshot.sessionId && snapshot.sessionId !== state.sessionId) return state;
  const listed = snapshot.recentMessages ?? [];
  const last = listed[listed.length - 1];
  const inflight = snapshot.inflight && last?.id === snapshot.inflight ? last : null;
  const recent = inflight ? listed.slice(0, -1) : listed;
  const older = olderRows(state.rows, recent, snapshot.hasOlder || snapshot.archiveCount);
  return {
    ...emptyState(state.sessionId),
    seq: snapshot.seq ?? null,
    rows: reuse(state.rows, [...older, ...recent]),
    inflight: inflight && same(inflight, state.inflight) ? state.inflight : inflight,
    pending: snapshot.pending ?? [],
    running: Boolean(snapshot.running),
    agents: snapshot.agents ?? [],
    hasOlder: older.length ? state.hasOlder : Boolean(snapshot.hasOlder),
    archives: older.length ? state.archives : snapshot.archiveCount ?? 0,
    agentId: snapshot.agentId ?? state.agentId,
    agentName: snapshot.agentName ?? state.agentName,
    title: snapshot.title ?? state.title,
    contextTokens: snapshot.contextTokens ?? 0,
    outputTokens: snapshot.outputTokens ?? 0,
    maxContextTokens: snapshot.maxContextTokens ?? 0,
    loaded: true,
    problems: state.problems,
  };
}

/** Rows this page already loaded that stand before the snapshot's first one: a snapshot holds only the newest. */
function olderRows(had, recent, hasMore) {
  if (!hasMore || !recent.length) return [];
  const at = had.findIndex((row) => row.id === recent[0].id);
  return at > 0 ? had.slice(0, at) : [];
}

/** The same rows, but the very objects we had where nothing changed, so that the view need not draw them again. */
function reuse(had, rows) {
  const byId = new Map(had.map((row) => [row.id, row]));
  return rows.map((row) => (same(row, byId.get(row.id)) ? byId.get(row.id) : row));
}

function same(one, other) {
  return Boolean(other) && JSON.stringify(one) === JSON.stringify(other);
}

// -- frames without a number ------------------------------------------------------------------------------------------

function applyUnnumbered(state, frame) {
  switch (frame.type) {
    case "chat:queued":
      return addPending(state, pendingOf(frame));
    case "chat:failed":
      return failed(state, frame);
    case "exchange:deleted":
      return markDeleted(state, new Set(frame.rowIds));
    case "session:deleted":
      return { ...emptyState(state.sessionId), deleted: true, loaded: true };
    case "error":
      return { ...state, problems: [...state.problems, { error: frame.error, code: frame.code }] };
    default:
      return state;
  }
}

function failed(state, { rowId, error }) {
  if (!state.pending.some((entry) => entry.rowId === rowId)) return stale(state); // its words are in the snapshot
  const pending = state.pending.map((entry) => (entry.rowId === rowId ? { ...entry, state: "failed", error } : entry));
  return { ...state, pending, running: false };
}

function markDeleted(state, ids) {
  if (!state.rows.some((row) => ids.has(row.id) && !row.deleted)) return state;
  return { ...state, rows: state.rows.map((row) => (ids.has(row.id) ? { ...row, deleted: true } : row)) };
}

function pendingOf(frame) {
  return { rowId: frame.rowId, text: frame.text, images: frame.images ?? [], stamp: frame.stamp };
}

// -- the holder's frames ----------------------------------------------------------------------------------------------

const NUMBERED = {
  "chat:user": (state, frame) => {
    const pending = state.pending.filter((entry) => entry.rowId !== frame.rowId);
    return { ...addRow(state, frame.row), pending, running: true };
  },
  "chat:thinking": (state, frame) => appendText(state, frame, "thinking"),
  "chat:stream": (state, frame) => appendText(state, frame, "text"),
  "agent:tool_call": toolCall,
  "agent:tool_result": toolResult,
  "chat:usage": (state, frame) => {
    if (knows(state, frame.rowId)) return state;
    const { usage, modelId, turnId } = frame;
    const { contextTokens, outputTokens } = frame;
    return { ...addRow(state, { ...frame.row, usage, modelId, turnId }), contextTokens, outputTokens };
  },
  "agent:context": (state, frame) => addRow(state, { ...frame.row, systemPrompt: frame.systemPrompt }),
  "chat:system": (state, frame) => addRow(state, frame.row),
  error: (state, frame) =>
    frame.row
      ? addRow(state, frame.row)
      : { ...state, problems: [...state.problems, { error: frame.error, code: frame.code }] },
  "chat:discard": discard,
  "chat:final": finish,
  "chat:followup": (state) => ({ ...state, running: true }),
  "chat:stopped": (state) => ({ ...state, running: false, agents: [] }),
  "chat:complete": (state, frame) => (frame.batchBoundary ? state : { ...state, running: false }),
  "agent:start": (state, frame) => withAgent(addRow(state, frame.row), frame.row),
  "agent:done": (state, frame) => ({
    ...addRow(state, frame.row),
    agents: state.agents.filter((one) => one.sessionId !== frame.row.taskId),
  }),
  "compact:started": (state) => ({ ...state, running: true }),
  "session:agents": (state, { agents }) => ({ ...state, agents }),
  "session:compacted": (state, { contextTokens }) => ({ ...state, contextTokens }),
};

/** A sub-agent of this session that was given something to do; questions to others of the tree do not count. */
function withAgent(state, { taskId, agentName }) {
  const own = taskId === `${state.sessionId}>${taskId?.split(">").at(-1)}`;
  if (!own || state.agents.some((one) => one.sessionId === taskId)) return state;
  return { ...state, agents: [...state.agents, { sessionId: taskId, agentName }] };
}

function knows(state, rowId) {
  // From the end: what is asked about is nearly always new or very recent.
  for (let at = state.rows.length - 1; at >= 0; at -= 1) if (state.rows[at].id === rowId) return true;
  return false;
}

function addRow(state, row) {
  return knows(state, row.id) ? state : { ...state, rows: [...state.rows, row] };
}

const stale = (state) => ({ ...state, stale: true });

/** The in-flight reply a frame speaks of; a new one when the frame begins it; null when we lack its beginning. */
function inflightFor(state, frame, rowId, begins) {
  if (state.inflight?.id === rowId) return state.inflight;
  if (!begins) return null;
  return {
    id: rowId,
    type: "assistant",
    role: "assistant",
    content: "",
    timestamp: frame.at,
    agentName: frame.agentName,
    contentBlocks: [],
  };
}

function withBlocks(state, inflight, contentBlocks) {
  return { ...state, running: true, inflight: { ...inflight, contentBlocks, content: contentOf(contentBlocks) } };
}

function contentOf(blocks) {
  return blocks.reduce((text, block) => (block.type === "text" ? text + block.text : text), "");
}

function replaced(blocks, index, block) {
  const copy = blocks.slice();
  copy[index] = block;
  return copy;
}

function appendText(state, frame, kind) {
  if (knows(state, frame.rowId)) return state;
  const inflight = inflightFor(state, frame, frame.rowId, frame.block === 0 && frame.offset === 0);
  if (!inflight) return stale(state);
  const blocks = inflight.contentBlocks ?? [];
  const { block: index, offset, text, turnId } = frame;
  if (index > blocks.length || (index === blocks.length && offset > 0)) return stale(state);
  if (index === blocks.length) return withBlocks(state, inflight, [...blocks, { type: kind, text, turnId }]);
  const block = blocks[index];
  if (block.type !== kind || block.turnId !== turnId) return state;
  if (offset > block.text.length) return stale(state);
  if (offset + text.length <= block.text.length) return state;
  const grown = { ...block, text: block.text + text.slice(block.text.length - offset) };
  return withBlocks(state, inflight, replaced(blocks, index, grown));
}

function toolCall(state, frame) {
  if (knows(state, frame.rowId)) return state;
  const { rowId, block: index, entry } = frame.inflight;
  const inflight = inflightFor(state, frame, rowId, index === 0);
  if (!inflight) return stale(state);
  const blocks = inflight.contentBlocks ?? [];
  if (index > blocks.length) return stale(state);
  const added = addRow(state, { ...frame.row, toolInput: frame.input });
  return index < blocks.length ? added : withBlocks(added, inflight, [...blocks, entry]);
}

function toolResult(state, frame) {
  if (knows(state, frame.rowId)) return state;
  const added = addRow(state, { ...frame.row, toolOutput: frame.result });
  if (!frame.inflight) return added;
  const { rowId, block: index } = frame.inflight;
  const blocks = state.inflight?.id === rowId ? state.inflight.contentBlocks : null;
  const block = blocks?.[index];
  if (!block?.toolCall) return stale(state);
  const call = { ...block.toolCall, output: frame.result };
  if (frame.durationMs !== undefined) call.durationMs = frame.durationMs;
  return withBlocks(added, state.inflight, replaced(blocks, index, { ...block, toolCall: call }));
}

function discard(state, frame) {
  const { inflight } = state;
  if (inflight?.id !== frame.rowId) return state;
  const kept = inflight.contentBlocks.filter((block, at) => at < frame.from || block.turnId !== frame.turnId);
  return kept.length ? withBlocks(state, inflight, kept) : { ...state, inflight: null };
}

function finish(state, frame) {
  if (knows(state, frame.rowId)) return state;
  const { inflight } = state;
  if (inflight?.id !== frame.rowId || inflight.contentBlocks.length < frame.blocks) return stale(state);
  const { contentBlocks } = inflight;
  const row = { ...frame.row, ...(frame.blocks ? { contentBlocks: contentBlocks.slice(0, frame.blocks) } : {}) };
  const added = addRow(state, row);
  if (!frame.next) return { ...added, inflight: null };
  const rest = contentBlocks.slice(frame.blocks);
  return withBlocks(added, { ...inflight, id: frame.next.rowId, timestamp: frame.next.at }, rest);
}
