// Under the composer: the connection light with its meaning in words, and how full the model's context is.

import { setText } from "./dom.js";
import { tokens } from "./format.js";

const QUIET_MS = 600; // a connection made sooner than this is not announced

export class ConnectionLight {
  constructor(element) {
    this.element = element;
    this.words = element.querySelector("[data-connection-words]");
    setInterval(() => this.status?.state === "waiting" && this.show(), 1000);
  }

  set(status) {
    this.status = status;
    clearTimeout(this.timer);
    if (status.state === "connecting") this.timer = setTimeout(() => this.show(), QUIET_MS);
    else this.show();
  }

  show() {
    const { state, retryAt } = this.status;
    this.element.dataset.connection = state;
    setText(this.words, this.sentence(state, retryAt));
  }

  sentence(state, retryAt) {
    if (state === "connected") return "Connected";
    if (state === "connecting") return "Connecting…";
    if (state === "signed-out") return "Signed out";
    const seconds = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
    return `No connection, trying again ${seconds ? `in ${seconds} s` : "now"}`;
  }
}

export class ContextMeter {
  constructor(element) {
    this.element = element;
    this.bar = element.querySelector("[data-meter-bar]");
    this.words = element.querySelector("[data-meter-words]");
  }

  show({ contextTokens, maxContextTokens }) {
    this.element.hidden = !contextTokens || !maxContextTokens;
    if (this.element.hidden) return;
    const share = Math.min(1, contextTokens / maxContextTokens);
    const percent = share < 0.1 ? (share * 100).toFixed(1) : Math.round(share * 100);
    this.bar.style.width = `${Math.max(2, share * 100)}%`;
    this.element.classList.toggle("full", share > 0.75);
    setText(this.words, `${tokens(contextTokens)} / ${tokens(maxContextTokens)}`);
    this.element.title = `${percent} % of the model's context is used: ${contextTokens.toLocaleString()} of ${maxContextTokens.toLocaleString()} tokens`;
  }
}
