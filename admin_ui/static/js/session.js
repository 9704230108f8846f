// One open session: subscribes, folds frames into its state, asks for a snapshot when something is missing, and keeps the
// messages that wait. Knows the line and the state, draws nothing.

import { get, request } from "./api.js";
import { addPending, allRows, apply, clearProblems, emptyState, prependArchive, prependRows } from "./state.js";

const ASK_AGAIN_MS = 5_000;
const OLDER_ROWS = 60;
let noteCount = 0;

export class Session {
  constructor({ line, outbox, onchange }) {
    Object.assign(this, { line, outbox, onchange });
    this.workspace = null;
    this.state = emptyState();
    this.notes = []; // answers to commands: {key, text, command, after}; they are in no log and last as long as the page shows them
  }

  get id() {
    return this.state.sessionId;
  }

  /** Open a session, or a chat that has no session yet (`sessionId` null). */
  open(workspace, sessionId) {
    if (this.id) this.line.send({ type: "unsubscribe", sessionId: this.id });
    this.workspace = workspace;
    this.state = emptyState(sessionId);
    this.notes = [];
    this.subscribe();
    this.onchange();
  }

  /** The new chat gets its id; what is on the page stays. */
  adopt(sessionId) {
    this.placeNotes();
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
    if (frame.type === "chat:system" && frame.seq === undefined) return this.note(frame);
    return this.change(apply(this.state, frame));
  }

  /** It stays behind the row that was the last one when it came. */
  note({ sessionId, text, command }) {
    if (sessionId && sessionId !== this.id) return;
    this.notes = [...this.notes, { key: `note-${(noteCount += 1)}`, text, command, after: null }];
    if (this.state.loaded) this.placeNotes();
    this.onchange();
  }

  /** Notes that came before the rows did stand behind those that were there; a new chat has none. */
  placeNotes() {
    const ids = new Set(allRows(this.state).map((row) => row.id));
    for (const note of this.notes) note.after ??= ids;
  }

  acknowledged({ clientMsgId, sessionId, rowId }) {
    const entry = this.outbox.acknowledge(clientMsgId);
    if (!entry || sessionId !== this.id || !rowId) return; // a command leaves no row of its own
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

  get hasMore() {
    return this.state.hasOlder || this.state.archives > 0;
  }

  /** What stands before the oldest row here: older rows of the log first, then its archived parts, one at a time. */
  async loadOlder() {
    if (this.state.hasOlder) return this.loadRows();
    return this.state.archives > 0 ? this.loadArchive() : undefined;
  }

  async loadRows() {
    const { state } = this;
    const before = state.rows[0]?.id;
    if (!before) return;
    let page;
    try {
      page = await this.fetch("rows", { before, limit: OLDER_ROWS });
    } catch (error) {
      if (error.code !== "row_missing") throw error;
      this.reload(); // archived since: what is here no longer joins what the log holds
      return;
    }
    if (this.id !== state.sessionId) return;
    const hasOlder = page.hasOlder && page.rows.length > 0;
    // At the log's beginning: a part may have been archived before it since this session was opened.
    this.change(prependRows(this.state, page.rows, hasOlder, hasOlder ? undefined : page.archiveCount));
  }

  async loadArchive() {
    const { sessionId, archives } = this.state;
    const rows = await this.archivedRows(archives);
    if (this.id === sessionId) this.change(prependArchive(this.state, rows, archives));
  }

  /** A damaged part is said in its place: those before it are still to be had. */
  async archivedRows(number) {
    try {
      return (await this.fetch(`archive/${number}`)).messages;
    } catch (error) {
      if (error.code !== "archive_unreadable") throw error;
      return [{ id: `unreadable-${number}`, type: "notification", role: "system", content: error.message }];
    }
  }

  fetch(path, query = {}) {
    return get(`sessions/logs/${encodeURIComponent(this.id)}/${path}`, { projectId: this.workspace, ...query });
  }

  reload() {
    this.change({ ...this.state, rows: [], hasOlder: false, archives: 0, stale: true });
  }

  /** Take one exchange out of the conversation for good. Rejects with the server's sentence. */
  async deleteExchange(rowId) {
    const path = `sessions/logs/${encodeURIComponent(this.id)}/exchanges/${encodeURIComponent(rowId)}`;
    const { rowIds } = await request("DELETE", path, { query: { projectId: this.workspace } });
    this.receive({ type: "exchange:deleted", sessionId: this.id, rowIds: [rowId, ...rowIds] });
  }

  change(next) {
    if (next === this.state) return;
    const becameStale = next.stale && !this.state.stale;
    this.state = next;
    if (next.loaded) this.placeNotes();
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
