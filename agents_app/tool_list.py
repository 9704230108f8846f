"""What an agent.yaml may list under `tools`, with a sentence for each, as a form shows it."""

from agents_app.config.tool_names import LISTED, RELAY
from agents_app.tools.registry import tools_for

_OTHERS = {
    RELAY: "Send messages into other workspaces: relay_send, relay_interrupt, relay_stop; only at full access.",
}


def listed_tools() -> list[dict[str, str]]:
    """Name and description in the order in which they are listed."""
    known = tools_for(LISTED)
    texts = {name: known[name].description if name in known else _OTHERS.get(name, "") for name in LISTED}
    return [{"name": name, "description": text} for name, text in texts.items()]
