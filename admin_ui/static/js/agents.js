// Which agent answers in a new chat. In a session that has begun its agent is shown and cannot be changed.

import { get } from "./api.js";
import { h } from "./dom.js";

export class AgentChoice {
  /** `showModel(agent)` is told who answers, undefined when that is not known; `chose()` of a person's choice. */
  constructor(select, showModel, chose) {
    Object.assign(this, { select, showModel });
    this.agents = [];
    this.loaded = false;
    this.session = { agentId: null, agentName: "" };
    this.wanted = null;
    select.addEventListener("change", () => {
      this.wanted = select.value;
      this.draw();
      chose();
    });
  }

  /** Who answers in the next new chat. */
  want(agentId) {
    this.wanted = agentId;
    this.draw();
  }

  async load(workspace) {
    try {
      const answer = await get("agent-configs", { projectId: workspace });
      this.agents = answer.agents.filter((agent) => !agent.internal && !agent.overridden && !agent.disabled);
      this.loaded = true;
      this.problem = null;
    } catch (error) {
      this.agents = [];
      this.problem = error.message;
    }
    this.draw();
  }

  /** `session`: {agentId, agentName}, or null for a new chat. */
  show(session) {
    const next = session ?? { agentId: null, agentName: "" };
    if (next.agentId === this.session.agentId && next.agentName === this.session.agentName) return;
    this.session = { agentId: next.agentId, agentName: next.agentName };
    this.draw();
  }

  /** The agent a new chat is sent to; null lets the server choose. */
  get chosen() {
    return this.session.agentId ? null : (this.named ?? this.agents.find((agent) => !agent.error)?.id ?? null);
  }

  /** The agent that somebody chose for a session to come; null for one that is not there, as an old address may name. */
  get named() {
    if (this.session.agentId) return null;
    return !this.loaded || this.agents.some((agent) => agent.id === this.wanted && !agent.error) ? this.wanted : null;
  }

  draw() {
    const { select, session } = this;
    const fixed = Boolean(session.agentId);
    const listed = fixed
      ? [{ id: session.agentId, name: session.agentName || this.nameOf(session.agentId) }]
      : this.agents;
    select.replaceChildren(...listed.map(optionOf));
    if (!listed.length) select.append(h("option", { value: "" }, this.problem ? "Agents unavailable" : "Default"));
    select.disabled = fixed || listed.length < 2;
    select.value = fixed ? session.agentId : (this.chosen ?? "");
    select.title = this.problem ?? (fixed ? "The agent of this session" : this.describe(select.value));
    const answering = this.agents.find((agent) => agent.id === (session.agentId ?? this.chosen));
    this.showModel(answering);
  }

  nameOf(id) {
    return this.agents.find((agent) => agent.id === id)?.name ?? id;
  }

  describe(id) {
    const agent = this.agents.find((one) => one.id === id);
    return agent?.modelError?.error || agent?.description || "The agent that answers";
  }
}

function optionOf(agent) {
  const trouble = agent.error ? " (cannot be read)" : agent.modelError ? " (cannot answer)" : "";
  const title = agent.error ?? agent.modelError?.error;
  return h("option", { value: agent.id, disabled: Boolean(agent.error), title }, (agent.name || agent.id) + trouble);
}
