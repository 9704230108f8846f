// The chat page: puts the parts together. Every part knows its own subject; only this file knows all of them.

import { newSessionId, readAddress, writeAddress } from "./address.js";
import { AgentChoice } from "./agents.js";
import { signedIn, toLogin } from "./api.js";
import { Composer } from "./composer.js";
import { confirmDialog } from "./dialogs.js";
import { byData, setText } from "./dom.js";
import { draftPlace } from "./drafts.js";
import { Follow } from "./follow.js";
import { baseName } from "./format.js";
import { blocksOf } from "./layout.js";
import { Markdown } from "./markdown.js";
import { Outbox } from "./outbox.js";
import { loadCommands } from "./palette.js";
import { Panel } from "./panel.js";
import { Session } from "./session.js";
import { SessionList } from "./sessions.js";
import { Connection } from "./socket.js";
import { ConnectionLight, ContextMeter } from "./status-line.js";
import { switchSession } from "./switcher.js";
import { ConversationView } from "./view-conversation.js";
import { renderQueue } from "./view-waiting.js";
import { chooseWorkspace, rememberWorkspace } from "./workspace.js";

const SETTLE_MS = 700; // how long the first look at a session waits for its markdown

// What changes the list of sessions: the server's hints, and what this page itself sees happen.
const TOLD_BY = new Set(["session:changed", "session:deleted", "chat:ack", "chat:user", "chat:complete"]);

const config = document.body.dataset;

class ChatPage {
  constructor() {
    this.markdown = new Markdown();
    this.light = new ConnectionLight(byData("connection"));
    this.meter = new ContextMeter(byData("meter"));
    this.panel = new Panel();
    this.line = new Connection({
      checkLogin: signedIn,
      onframe: (frame) => this.receive(frame),
      onopen: () => this.connected(),
      onstatus: (status) => this.status(status),
    });
    this.outbox = new Outbox({ line: this.outboxLine(), onchange: () => this.session && this.drawSoon() });
    this.session = new Session({ line: this.line, outbox: this.outbox, onchange: () => this.drawSoon() });
    this.list = new SessionList(byData("panel"), {
      open: (id) => this.open(id),
      closed: (id) => this.closed(id),
      loaded: () => this.drawSoon(),
    });
    this.agents = new AgentChoice(
      byData("agent-select"),
      (agent) => this.showModel(agent),
      () => this.nameAgent(),
    );
    this.composer = new Composer(byData("composer-area"), {
      send: (text, images) => this.send(text, images),
      stop: () => this.session.control("chat:stop"),
      interrupt: () => this.session.control("chat:interrupt"),
      commands: () => loadCommands(this.workspace, this.session.id, this.agents.chosen),
    });
    this.view = new ConversationView(byData("rows"), { markdown: this.markdown, actions: this.rowActions() });
    this.follow = new Follow({
      scroller: byData("conversation"),
      content: byData("column"),
      pill: byData("new-below"),
      onnearstart: () => this.loadOlder(),
    });
    this.listen();
  }

  start() {
    this.show(readAddress(config.defaultWorkspace));
    this.line.connect();
  }

  // -- what is open ---------------------------------------------------------------------------------------------------

  show({ workspace, session, agent }) {
    const moved = workspace !== this.workspace;
    this.workspace = workspace;
    writeAddress({ workspace, session, agent }, { replace: true });
    if (agent) this.agents.want(agent);
    rememberWorkspace(workspace);
    this.settled = !session;
    this.follow.toEnd();
    this.session.open(workspace, session);
    this.composer.open(draftPlace(workspace, session));
    this.list.open(workspace, session);
    if (moved) {
      setText(byData("workspace-name"), baseName(workspace));
      const button = byData("workspace-button");
      button.title = `Workspace ${workspace} (click to open another)`;
      button.setAttribute("aria-label", button.title);
      this.agents.load(workspace);
    }
    this.composer.text.focus({ preventScroll: true });
  }

  open(session, workspace = this.workspace, agent = null) {
    writeAddress({ workspace, session, agent });
    this.panel.closeSheet();
    this.show({ workspace, session, agent });
  }

  closed(session) {
    if (session === this.session.id) this.open(null);
  }

  async chooseWorkspace() {
    const chosen = await chooseWorkspace(this.workspace, config.defaultWorkspace);
    if (chosen && chosen !== this.workspace) this.open(null, chosen);
  }

  // -- the line -------------------------------------------------------------------------------------------------------

  outboxLine() {
    const page = this;
    return {
      get connected() {
        return page.line.connected;
      },
      get unsent() {
        return page.line.unsent;
      },
      send: (frame) => page.line.send(frame),
      reconnect: () => page.line.connect(),
    };
  }

  connected() {
    this.session.subscribe();
    this.outbox.resend();
    if (this.wasConnected) {
      this.list.refreshSoon();
      this.agents.load(this.workspace); // the server may have been started anew, with a key
    }
    this.wasConnected = true;
  }

  status(status) {
    this.light.set(status);
    if (status.state === "signed-out") toLogin();
  }

  receive(frame) {
    if (frame.type === "session:switched") return this.switched(frame);
    if (TOLD_BY.has(frame.type)) this.list.refreshSoon();
    return this.session.receive(frame);
  }

  /** A command of ours led to another session, perhaps one to come, with an agent for it. */
  switched({ sessionId, projectId, agentId }) {
    this.open(sessionId, projectId, agentId);
  }

  // -- what a person does ---------------------------------------------------------------------------------------------

  send(text, images) {
    const agentId = this.agents.chosen;
    if (!this.session.id || this.session.state.deleted) this.adopt(newSessionId());
    this.session.send(text, images, agentId);
    this.follow.toEnd();
    return true;
  }

  adopt(sessionId) {
    writeAddress({ workspace: this.workspace, session: sessionId, agent: this.agents.named }, { replace: true });
    this.session.adopt(sessionId);
    this.composer.rename(draftPlace(this.workspace, sessionId));
    this.list.current = sessionId;
  }

  /** Who was chosen for a session to come stands in the address until the session has begun, and its own agent counts. */
  nameAgent() {
    writeAddress({ workspace: this.workspace, session: this.session.id, agent: this.agents.named }, { replace: true });
  }

  rowActions() {
    return {
      resend: () => {
        const last = this.session.state.rows.findLast((row) => row.type === "user" && !row.compactSummary);
        if (last) this.send(last.content, []);
      },
      deleteExchange: (row) => this.deleteExchange(row),
      retry: (entry) => this.outbox.retry(entry.clientMsgId),
      drop: (entry) => this.outbox.drop(entry.clientMsgId),
    };
  }

  deleteExchange(row) {
    return confirmDialog({
      title: "Delete this exchange?",
      text: "The agent forgets the message and everything it answered to it, but for what a summary already says of them. They stay here, greyed out. This cannot be undone.",
      action: "Delete it",
      run: () => this.session.deleteExchange(row.id),
    });
  }

  async loadOlder() {
    if (this.loadingOlder || !this.session.hasMore) return;
    this.loadingOlder = true;
    const note = byData("older-note");
    setText(note, "Loading earlier messages…");
    note.hidden = false;
    try {
      await this.session.loadOlder();
      note.hidden = true;
    } catch (error) {
      setText(note, error.message);
    } finally {
      this.loadingOlder = false;
    }
  }

  listen() {
    addEventListener("popstate", () => this.show(readAddress(config.defaultWorkspace)));
    byData("workspace-button").addEventListener("click", () => this.chooseWorkspace());
    for (const button of document.querySelectorAll("[data-new-session]")) button.addEventListener("click", () => this.open(null));
    byData("older-button").addEventListener("click", () => this.loadOlder());
    byData("switch").addEventListener("click", () => this.switch());
    document.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k") {
        event.preventDefault();
        this.switch();
      }
    });
  }

  switch() {
    return switchSession(this.workspace, (session) => this.open(session));
  }

  // -- drawing --------------------------------------------------------------------------------------------------------

  /** Once per frame of the screen; a hidden page is drawn too, only less often. */
  drawSoon() {
    if (this.drawing) return;
    this.drawing = true;
    if (document.hidden) setTimeout(() => this.draw(), 200);
    else requestAnimationFrame(() => this.draw());
  }

  async draw() {
    if (!this.settled && this.session.state.loaded) {
      this.settled = true;
      await this.prepare(this.session.state);
    }
    this.drawing = false;
    this.drawNow();
  }

  /** The finished texts of a session that was just opened, rendered before they are shown, so that nothing jumps. */
  async prepare(state) {
    const texts = state.rows
      .filter((row) => row.type === "assistant")
      .flatMap(blocksOf)
      .filter((block) => block.type === "text")
      .map((block) => block.text);
    const late = new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    await Promise.race([this.markdown.prepare(texts), late]);
  }

  drawNow() {
    const { session } = this;
    const { state } = session;
    const waiting = session.waiting();
    const behind = state.running ? waiting.filter((entry) => entry.state !== "failed") : [];
    const anchor = this.firstVisibleRow();
    this.follow.keepingPlace(anchor, () => {
      byData("older-button").hidden = !session.hasMore;
      this.view.render(state, waiting.filter((entry) => !behind.includes(entry)), session.notes);
    });
    renderQueue(byData("queue"), behind);
    this.drawStates(state, waiting);
    this.composer.setRunning(state.running || state.agents.length > 0);
    this.meter.show(state);
    this.showAgent(state);
    if (state !== this.drawnState || session.notes !== this.drawnNotes) this.follow.grown();
    this.drawnState = state;
    this.drawnNotes = session.notes;
  }

  showAgent(state) {
    const began = state.agentId && state.agentId !== this.agents.session.agentId;
    this.agents.show(state.agentId ? state : null);
    if (began) this.nameAgent();
  }

  drawStates(state, waiting) {
    const nothing = !state.rows.length && !state.inflight && !waiting.length && !this.session.notes.length;
    byData("empty").hidden = !(nothing && (!state.sessionId || state.loaded) && !state.deleted);
    byData("loading").hidden = !(state.sessionId && !state.loaded);
    byData("gone").hidden = !state.deleted;
    const behind = !state.running && state.agents.length > 0;
    byData("working").hidden = !behind && (!state.running || Boolean(state.inflight));
    setText(byData("working-words"), behind ? `${agentNames(state.agents)} at work…` : "Working…");
    const problem = state.problems[state.problems.length - 1];
    if (problem !== this.problem) this.composer.explain(problem?.error ?? "");
    this.problem = problem;
    const title = this.list.titleOf(state.sessionId) || state.title || (state.rows.length ? "Untitled" : "New chat");
    setText(byData("title"), title);
    document.title = `${state.running ? "● " : ""}${title} · Halo`;
  }

  firstVisibleRow() {
    if (this.follow.following) return null;
    const top = this.follow.scroller.getBoundingClientRect().top;
    return [...this.view.list.children].find((row) => row.getBoundingClientRect().bottom > top) ?? null;
  }

  showModel(agent) {
    const words = byData("model");
    setText(words, agent?.modelLabel ?? "");
    words.title = agent?.modelError?.error ?? "The model that answers";
    words.classList.toggle("trouble", Boolean(agent?.modelError));
    const banner = byData("rehearsal-banner");
    if (agent?.model && banner && !agent.modelError) banner.hidden = agent.model.provider !== "rehearsal";
  }
}

/** "Scout and Writer", with how many more there are. */
function agentNames(agents) {
  const names = [...new Set(agents.map((one) => one.agentName))];
  if (names.length > 3) return `${names.slice(0, 3).join(", ")} and ${names.length - 3} more`;
  return names.join(" and ");
}

const page = new ChatPage();
page.start();
