// One open session: subscribes, folds frames into its state, asks for a snapshot when something is missing, and keeps the
// messages that wait. Knows the line and the state, draws nothing.

import { get } from "./api.js";
import { addPending, apply, clearProblems, emptyState, prependRows } from "./state.js";

const ASK_AGAIN_MS = 5_000;
const OLDER_ROWS = 60;

export class Session {
  constructor({ line, outbox, onchange }) {
    Object.assign(this, { line, outbox, onchange });
    this.workspace = null;
    this.state = emptyState();
  }

  get id() {
    return this.state.sessionId;
  }

  /** Open a session, or a chat that has no session yet (`sessionId` null). */
  open(workspace, sessionId) {
    if (this.id) this.line.send({ type: "unsubscribe", sessionId: this.id });
    this.workspace = workspace;
    this.state = emptyState(sessionId);
    this.subscribe();
    this.onchange();
  }

  /** The new chat gets its id; what is on the page stays. */
  adopt(sessionId) {
    this.state = { ...emptyState(sessionId), loaded: true };
    this.subscribe();
  }

  subscribe() {
    clearTimeout(this.again);
    this.again = setTimeout(() => this.state.stale && this.subscribe(), ASK_AGAIN_MS); // the snapshot has not come
    if (this.id) this.line.send({ type: "subscribe", sessionId: this.id, projectId: this.workspace });
  }

  receive(frame) {
    if (frame.type === "chat:ack") return this.acknowledged(frame);
    if (frame.type === "error" && frame.clientMsgId) return this.outbox.refuse(frame.clientMsgId, frame.error);
    if (frame.type === "chat:queued" && frame.clientMsgId) this.outbox.acknowledge(frame.clientMsgId);
    return this.change(apply(this.state, frame));
  }

  acknowledged({ clientMsgId, sessionId, rowId }) {
    const entry = this.outbox.acknowledge(clientMsgId);
    if (!entry || sessionId !== this.id) return;
    const { text, images } = entry;
    this.change(addPending(this.state, { rowId, text, images }));
    // Sent more than once: it may have landed long ago, beyond the rows we hold. A snapshot tells.
    if (entry.attempts > 1) this.change({ ...this.state, stale: true });
  }

  send(text, images, agentId) {
    this.change(clearProblems(this.state));
    return this.outbox.add({ workspace: this.workspace, sessionId: this.id, agentId, text, images });
  }

  control(type) {
    return this.line.send({ type, sessionId: this.id, projectId: this.workspace });
  }

  async loadOlder() {
    const { state, workspace } = this;
    const before = state.rows[0]?.id;
    if (!state.hasOlder || !before) return;
    const query = { projectId: workspace, before, limit: OLDER_ROWS };
    const page = await get(`sessions/logs/${encodeURIComponent(state.sessionId)}/rows`, query);
    if (this.id === state.sessionId) this.change(prependRows(this.state, page.rows, page.hasOlder && page.rows.length > 0));
  }

  change(next) {
    if (next === this.state) return;
    const becameStale = next.stale && !this.state.stale;
    this.state = next;
    if (becameStale) this.subscribe();
    this.onchange();
  }

  /** What was sent and is not in the log: the server's queue first, then what it has not confirmed. */
  waiting() {
    const queued = this.state.pending.map((entry) => ({ ...entry, key: entry.rowId }));
    const mine = this.outbox.entries.filter((one) => one.sessionId === this.id && one.workspace === this.workspace);
    return [...queued, ...mine];
  }
}
