"""Why a value of a skill's or an agent's settings does not hold, each with what a person can do about it.

Parts of sentences, without a full stop: activations tell them to the model, the settings' page to people. Which of
them is true where is `params`.
"""

from agents_app.config.agent_yaml import Scope
from agents_app.config.errors import shown
from agents_app.config.settings_file import Settings

KEY_IS_THE_INSTALLATIONS = (
    "the key that goes with it is the installation's, and a workspace does not say where that is sent: set this for "
    "the whole installation, or write a key of the workspace's own by hand into its .halo/settings.yaml as well"
)

GLOBAL_ONLY = "it is set for the whole installation, and a workspace cannot change it"
NO_SCALAR = "it must be a text, a number, true or false, and no block or list"


def not_for_workspaces(is_agent: bool, settings: Settings) -> str:
    """The installation's value, of what lies in the workspace."""
    return f"{_lying_there(is_agent)} is not given the installation's values: {_own_value(is_agent, settings)}"


def guarded(variable: str, scope: Scope, is_agent: bool, settings: Settings) -> str:
    """A variable in the workspace's settings."""
    remedy = _own_value(is_agent, settings) if scope == "workspace" else "set it for the whole installation"
    return f"a workspace's settings may not name the environment variable {variable}: {remedy}"


def guarded_default(variable: str, is_agent: bool, settings: Settings) -> str:
    """A variable in the default of what lies in the workspace."""
    there = _lying_there(is_agent)
    return f"{there} may not name the environment variable {variable}: {_own_value(is_agent, settings)}"


def agents_place(settings: Settings) -> str:
    """Where the agents of the installation lie, as a person finds it."""
    return shown(settings.home.global_agents) if settings.home is not None else "HALO_HOME/global/agents"


def _skills_place(settings: Settings) -> str:
    return shown(settings.home.global_skills) if settings.home is not None else "HALO_HOME/global/skills"


def _lying_there(is_agent: bool) -> str:
    return "an agent that lies in the workspace" if is_agent else "a skill that lies in the workspace"


def _own_value(is_agent: bool, settings: Settings) -> str:
    place = agents_place(settings) if is_agent else _skills_place(settings)
    too = "" if is_agent else f", and the agent that uses it into {agents_place(settings)}"
    return f"move it into {place}{too}, or write the value itself by hand into the workspace's .halo/settings.yaml"
