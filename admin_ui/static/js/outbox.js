// What was sent and not acknowledged yet. An entry stays until its `chat:ack` comes: it is sent again after each new
// connection, a silent line is replaced after 5 s, and after 2 min the reader is told and offered another try. The server
// knows an entry by `clientMsgId`, so sending it again is harmless. Entries survive a reload of the tab.

const ACK_MS = 5_000;
const GIVE_UP_MS = 120_000;
const CHECK_MS = 500;
const STORED = "halo:outbox";

export class Outbox {
  /** `line`: {connected, unsent, send(frame), reconnect()}; `onchange()` after every change of `entries`. */
  constructor({ line, onchange }) {
    this.line = line;
    this.onchange = onchange;
    this.entries = stored();
    setInterval(() => this.check(), CHECK_MS);
  }

  /** {workspace, sessionId, agentId, text, images: [{data, mimeType}]} */
  add(message) {
    const entry = { ...message, key: newId(), state: "sending", since: Date.now(), sentAt: 0, attempts: 0 };
    entry.clientMsgId = entry.key;
    this.change([...this.entries, entry]);
    this.send(entry);
    return entry;
  }

  /** The entry an acknowledgement belongs to, taken out; null when it is not ours. */
  acknowledge(clientMsgId) {
    const entry = this.entries.find((one) => one.clientMsgId === clientMsgId);
    if (!entry) return null;
    this.change(this.entries.filter((one) => one !== entry));
    return entry;
  }

  /** The server refused it: it stays, with the server's sentence. */
  refuse(clientMsgId, error) {
    this.patch(clientMsgId, { state: "failed", error });
  }

  retry(clientMsgId) {
    this.patch(clientMsgId, { state: "sending", error: null, since: Date.now() });
    this.send(this.entries.find((one) => one.clientMsgId === clientMsgId));
  }

  drop(clientMsgId) {
    this.change(this.entries.filter((one) => one.clientMsgId !== clientMsgId));
  }

  /** After a new connection: everything that waits goes out again, in order. */
  resend() {
    for (const entry of this.entries) if (entry.state === "sending") this.send(entry);
  }

  send(entry) {
    const { text, images, sessionId, workspace, agentId, clientMsgId } = entry;
    const frame = { type: "chat", message: text, sessionId, projectId: workspace, clientMsgId };
    if (agentId) frame.agentId = agentId;
    if (images.length) frame.images = images.map(({ data, mimeType }) => ({ data, mimeType }));
    if (!this.line.send(frame)) return;
    entry.sentAt = Date.now();
    entry.attempts += 1;
  }

  check() {
    const now = Date.now();
    for (const entry of this.entries) {
      if (entry.state !== "sending") continue;
      if (now - entry.since > GIVE_UP_MS) {
        this.refuse(entry.clientMsgId, "The server did not confirm this message within two minutes.");
      }
    }
    if (!this.line.connected) return;
    // Big images take longer than an acknowledgement may: the clock starts when the network has taken everything.
    if (this.line.unsent) return this.entries.forEach((entry) => (entry.sentAt = now));
    const silent = this.entries.some((one) => one.state === "sending" && one.sentAt && now - one.sentAt > ACK_MS);
    if (silent) this.line.reconnect();
    return undefined;
  }

  patch(clientMsgId, changes) {
    this.change(this.entries.map((one) => (one.clientMsgId === clientMsgId ? { ...one, ...changes } : one)));
  }

  change(entries) {
    this.entries = entries;
    store(entries);
    this.onchange();
  }
}

function newId() {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function stored() {
  try {
    const entries = JSON.parse(sessionStorage.getItem(STORED) ?? "[]");
    return entries.map((entry) => ({ ...entry, state: "sending", since: Date.now(), sentAt: 0 }));
  } catch {
    return [];
  }
}

function store(entries) {
  try {
    sessionStorage.setItem(STORED, JSON.stringify(entries));
  } catch {
    // Images can be bigger than the store: then only this page's memory holds them.
  }
}
