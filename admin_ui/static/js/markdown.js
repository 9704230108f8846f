// Finished blocks become HTML on the server, many in one request. Rendered texts are kept; when the server refuses or
// cannot be reached the block simply stays plain text.

import { post } from "./api.js";

const MAX_CHARS = 200_000;
const MAX_BATCH = 100;
const MAX_BATCH_CHARS = 1_000_000;
const MAX_KEPT = 2000;
const COLLECT_MS = 15;

export class Markdown {
  constructor(render = (texts) => post("markdown", { texts }).then((answer) => answer.html)) {
    this.render = render;
    this.kept = new Map();
    this.waiting = new Map(); // text → callbacks
    this.timer = null;
  }

  /** The HTML of a text when it is already known. */
  get(text) {
    return this.kept.get(text) ?? null;
  }

  /** Calls `done(html)` once it is known; never when it cannot be had. */
  want(text, done) {
    const known = this.get(text);
    if (known !== null) return done(known);
    if (!text.trim() || text.length > MAX_CHARS) return undefined;
    if (!this.waiting.has(text)) this.waiting.set(text, []);
    this.waiting.get(text).push(done);
    this.timer ??= setTimeout(() => this.flush(), COLLECT_MS);
    return undefined;
  }

  /** Resolves when all these texts are known or were given up. */
  async prepare(texts) {
    texts.filter((text) => this.get(text) === null).forEach((text) => this.want(text, () => {}));
    if (this.waiting.size) await this.flush();
  }

  async flush() {
    clearTimeout(this.timer);
    this.timer = null;
    const waiting = [...this.waiting];
    this.waiting = new Map();
    await Promise.all(batches(waiting).map((batch) => this.send(batch)));
  }

  async send(batch) {
    let html;
    try {
      html = await this.render(batch.map(([text]) => whole(text)));
    } catch {
      return; // plain text is shown; the next view of it asks again
    }
    batch.forEach(([text, callbacks], at) => {
      this.kept.set(text, html[at]);
      callbacks.forEach((done) => done(html[at]));
    });
    for (const text of this.kept.keys()) {
      if (this.kept.size <= MAX_KEPT) break;
      this.kept.delete(text);
    }
  }
}

/** Old files hold halves of emoji, which no request can carry. */
function whole(text) {
  return text.toWellFormed?.() ?? text;
}

function batches(waiting) {
  const all = [];
  let size = Infinity;
  for (const entry of waiting) {
    const current = all[all.length - 1];
    if (!current || current.length >= MAX_BATCH || size + entry[0].length > MAX_BATCH_CHARS) {
      all.push([entry]);
      size = entry[0].length;
    } else {
      current.push(entry);
      size += entry[0].length;
    }
  }
  return all;
}
