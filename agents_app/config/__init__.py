"""Configuration of agents: who they are, which model answers, what the system prompt says. Plain Python, no Django."""
