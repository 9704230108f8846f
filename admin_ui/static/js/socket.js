// The one WebSocket of the page: connects, proves that the line lives, and connects again when it does not.
//
// What is sent over it and what comes is others' business. `clock` and `open` can be replaced by a test.

const PROBE_EVERY_MS = 15_000;
const PROBE_ANSWER_MS = 5_000; // after waking up or coming back online we do not wait for two probes
const MISSED_PROBES = 2;
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 30_000;
const LOGIN_ENDED = 4401; // the server's close code
const SLEPT_MS = 30_000; // timers that fire so late mean that the page was frozen

export function socketUrl() {
  return `${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}/ws`;
}

/** Events: onframe(frame), onopen(), onstatus({state, retryAt}); state: connecting, connected, waiting, signed-out. */
export class Connection {
  constructor({ url = socketUrl(), checkLogin, onframe, onopen, onstatus }) {
    Object.assign(this, { url, checkLogin, onframe, onopen, onstatus });
    this.socket = null;
    this.missed = 0;
    this.failures = 0;
    this.probe = setInterval(() => this.tick(), PROBE_EVERY_MS);
    this.lastTick = Date.now();
    addEventListener("online", () => this.wake());
    addEventListener("pageshow", () => this.wake());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.wake());
    document.addEventListener("resume", () => this.wake());
  }

  connect() {
    clearTimeout(this.retry);
    this.drop();
    this.onstatus({ state: "connecting" });
    const socket = new WebSocket(this.url);
    this.socket = socket;
    let opened = false;
    socket.onopen = () => {
      if (socket !== this.socket) return;
      opened = true;
      this.failures = 0;
      this.missed = 0;
      this.onstatus({ state: "connected" });
      this.onopen();
    };
    socket.onmessage = (event) => socket === this.socket && this.receive(event.data);
    socket.onclose = ({ code }) => socket === this.socket && this.closed(socket, opened && code !== LOGIN_ENDED);
  }

  get connected() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  /** Bytes that the network has not taken yet. */
  get unsent() {
    return this.socket?.bufferedAmount ?? 0;
  }

  /** False when there is no open line; the caller sends again after `onopen`. */
  send(frame) {
    if (!this.connected) return false;
    this.socket.send(JSON.stringify(frame));
    return true;
  }

  receive(data) {
    this.missed = 0;
    clearTimeout(this.answer);
    let frame;
    try {
      frame = JSON.parse(data);
    } catch {
      return; // not one of ours
    }
    if (frame && frame.type !== "__pong__") this.onframe(frame);
  }

  tick() {
    const late = Date.now() - this.lastTick - PROBE_EVERY_MS;
    this.lastTick = Date.now();
    if (!this.connected) return;
    if (late > SLEPT_MS) return this.wake();
    if (this.missed >= MISSED_PROBES) return this.connect();
    this.missed += 1;
    this.send({ type: "__ping__" });
  }

  /** The page or the network came back: believe the line only when it answers soon. */
  wake() {
    if (!this.socket || this.stopped) return;
    if (this.connected) {
      clearTimeout(this.answer);
      this.send({ type: "__ping__" });
      this.answer = setTimeout(() => this.connect(), PROBE_ANSWER_MS);
    } else if (this.socket.readyState !== WebSocket.CONNECTING) {
      this.connect();
    }
  }

  /** `welcome`: the server had taken us in and did not say that our login has ended. */
  async closed(socket, welcome) {
    clearTimeout(this.answer);
    if (!welcome) {
      const signedIn = await this.checkLogin(); // a refused handshake does not say why
      if (socket !== this.socket) return undefined; // meanwhile another attempt was begun
      if (signedIn === false) {
        this.stopped = true;
        return this.onstatus({ state: "signed-out" });
      }
    }
    const wait = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.failures);
    this.failures += 1;
    this.onstatus({ state: "waiting", retryAt: Date.now() + wait });
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.connect(), wait);
    return undefined;
  }

  drop() {
    clearTimeout(this.answer);
    this.missed = 0;
    const { socket } = this;
    this.socket = null;
    socket?.close();
  }
}
