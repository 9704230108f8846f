"""HTTP routes about agents: translation only."""
