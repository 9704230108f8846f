"""What can be wrong with the configuration. Each message names the file or setting and what is allowed there.

HaloError
├── ConfigurationError
│   └── ConfigFileInvalid    a YAML or Markdown file cannot be read or parsed
├── NotFound
│   ├── AgentNotFound        no folder of that agent anywhere
│   └── SkillNotFound        no folder of that skill anywhere
├── AgentInvalid             the folder exists, its agent.yaml does not hold
├── SkillInvalid             the folder exists, its SKILL.md or config.yaml does not hold
├── ProviderUnknown          no usable registry row of that id, or of a wire protocol we do not speak
├── ProviderKeyMissing       the provider needs a key and has none
├── EndpointUntrusted        an agent of a workspace would have a key sent to an address nobody here named
└── ModelsInstallFailed      a folder of provider rows cannot be read, or its rows cannot be put in place
"""

from collections.abc import Sequence
from pathlib import Path

from halo_project.errors import ConfigurationError, HaloError, NotFound


def shown(path: Path | str) -> str:
    """The path as text that any answer can carry: names that are not UTF-8 show a mark instead."""
    return str(path).encode("utf-8", "replace").decode()


class ConfigFileInvalid(ConfigurationError):
    """One file of the configuration cannot be used. `path` is that file."""

    code = "config_file_invalid"
    status = 422

    def __init__(self, path: Path, problem: str, *, line: int | None = None):
        where = f"{shown(path)}, line {line}" if line is not None else shown(path)
        super().__init__(f"{where}: {problem}")
        self.path = path
        self.problem = problem
        self.line = line

    @property
    def sentence(self) -> str:
        """The problem with its line, for where the file has been named."""
        return f"Line {self.line}: {self.problem}" if self.line is not None else self.problem


class AgentNotFound(NotFound):
    """No agent folder of this id in the workspace, in HALO_HOME or among the bundled ones."""

    code = "agent_missing"

    def __init__(self, agent_id: str):
        super().__init__(f"There is no agent with the id '{agent_id}'. Pick another one from the list of agents.")
        self.agent_id = agent_id


class FolderInvalid(HaloError):
    """An agent or a skill exists and its files do not hold. `problems` has one sentence for each fault."""

    status = 422
    kind = "agent"

    def __init__(self, folder_id: str, path: Path, problems: Sequence[str]):
        super().__init__(f"The {self.kind} '{shown(folder_id)}' cannot be used. {shown(path)}: {' '.join(problems)}")
        self.path = path
        self.problems = tuple(problems)


class AgentInvalid(FolderInvalid):
    """The agent cannot be used as it is."""

    code = "agent_invalid"


class SkillNotFound(NotFound):
    """No skill folder of this id in the workspace, in HALO_HOME or among the bundled ones."""

    code = "skill_missing"

    def __init__(self, skill_id: str):
        super().__init__(f"There is no skill with the id '{shown(skill_id)}'. `halo skills` lists those there are.")
        self.skill_id = skill_id


class SkillInvalid(FolderInvalid):
    """The skill cannot be used as it is."""

    code = "skill_invalid"
    kind = "skill"


class ProviderUnknown(HaloError):
    """The provider of a model block has no registry row we can use."""

    code = "provider_unknown"
    status = 422


class ProviderKeyMissing(HaloError):
    """The provider is known and has no key. The message says where to put one; it never holds a key."""

    code = "provider_key_missing"
    status = 409


class EndpointUntrusted(HaloError):
    """The message names the agent, the address, and the setting by which a person allows it."""

    code = "endpoint_untrusted"
    status = 409


class ModelsInstallFailed(HaloError):
    """Nothing can be installed from that folder, or into this HALO_HOME. The message names the path."""

    code = "models_install_failed"
    status = 409
