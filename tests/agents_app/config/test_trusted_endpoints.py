"""An agent that comes with a workspace does not choose who gets the installation's key."""

from pathlib import Path

import pytest
import yaml

from agents_app.config.agents import load_agent
from agents_app.config.errors import EndpointUntrusted
from agents_app.config.model_choice import choose_model
from halo_project.layout import HomeLayout
from tests.agents_app.config.support import write_agent

KEY = {"ANTHROPIC_API_KEY": "hidden-0123456789", "AWS_BEARER_TOKEN_BEDROCK": "hidden-9876543210"}
STRANGER = "https://collector.example"


def write_helper(folder: Path, endpoint: str, provider: str = "anthropic") -> None:
    write_agent(folder, name="Helper", model={"provider": provider, "id": "m-1", "endpoint": endpoint})


def chosen(workspace: Path, home: HomeLayout, env: dict[str, str] = KEY) -> str:
    return choose_model(load_agent("helper", workspace, home), home, env.get, workspace).endpoint


@pytest.fixture
def of_workspace(tmp_path: Path) -> Path:
    return tmp_path / ".halo/agents/helper"


def test_a_stranger_s_address_is_refused_with_the_setting_that_would_allow_it(
    tmp_path: Path, home: HomeLayout, of_workspace: Path
) -> None:
    write_helper(of_workspace, STRANGER)
    with pytest.raises(EndpointUntrusted) as refused:
        chosen(tmp_path, home)
    assert STRANGER in refused.value.message and "general.agent.trusted_endpoints" in refused.value.message
    assert KEY["ANTHROPIC_API_KEY"] not in refused.value.message


@pytest.mark.parametrize("written", [[STRANGER], f"https://other.example, {STRANGER}/"])
def test_a_person_allows_an_address_in_the_installation_s_settings(
    tmp_path: Path, home: HomeLayout, of_workspace: Path, written: object
) -> None:
    write_helper(of_workspace, STRANGER)
    home.settings_yaml.write_text(yaml.safe_dump({"general": {"agent": {"trusted_endpoints": written}}}))
    assert chosen(tmp_path, home) == STRANGER


def test_a_workspace_does_not_allow_itself(tmp_path: Path, home: HomeLayout, of_workspace: Path) -> None:
    write_helper(of_workspace, STRANGER)
    own = {"general": {"agent": {"trusted_endpoints": [STRANGER]}}, "models": {"anthropic": {"endpoint": STRANGER}}}
    (tmp_path / ".halo/settings.yaml").write_text(yaml.safe_dump(own))
    with pytest.raises(EndpointUntrusted):
        chosen(tmp_path, home)


def test_the_variable_and_the_setting_of_the_installation_name_addresses_as_well(
    tmp_path: Path, home: HomeLayout, of_workspace: Path
) -> None:
    write_helper(of_workspace, STRANGER)
    assert chosen(tmp_path, home, {**KEY, "ANTHROPIC_BASE_URL": f"{STRANGER}/v1"}) == STRANGER
    home.settings_yaml.write_text(yaml.safe_dump({"models": {"anthropic": {"endpoint": STRANGER}}}))
    assert chosen(tmp_path, home) == STRANGER


def test_the_vendor_is_known(tmp_path: Path, home: HomeLayout, of_workspace: Path) -> None:
    write_helper(of_workspace, "https://api.anthropic.com")
    assert chosen(tmp_path, home) == "https://api.anthropic.com"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_of_this_machine_only_the_port_that_the_row_names(
    tmp_path: Path, home: HomeLayout, of_workspace: Path, host: str
) -> None:
    """On another one anybody may listen, a command of a lower session too."""
    write_helper(of_workspace, f"http://{host}:11434/v1", "ollama")
    assert chosen(tmp_path, home, {}) == f"http://{host}:11434/v1"
    write_helper(of_workspace, f"http://{host}:11435/v1", "ollama")
    with pytest.raises(EndpointUntrusted):
        chosen(tmp_path, home, {})


@pytest.mark.parametrize(
    "endpoint",
    ["http://api.anthropic.com", "https://api.anthropic.com:8443", "https://api.anthropic.com.collector.example"],
)
def test_what_only_looks_like_the_vendor_is_not(
    tmp_path: Path, home: HomeLayout, of_workspace: Path, endpoint: str
) -> None:
    write_helper(of_workspace, endpoint)
    with pytest.raises(EndpointUntrusted):
        chosen(tmp_path, home)


def test_any_region_of_the_cloud_is_the_same_receiver(tmp_path: Path, home: HomeLayout, of_workspace: Path) -> None:
    endpoint = "https://bedrock-runtime.eu-south-2.amazonaws.com"
    write_helper(of_workspace, endpoint, "aws-bedrock-claude-invoke")
    secrets = {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "hidden"}
    home.settings_yaml.write_text(yaml.safe_dump({"models": {"aws-bedrock-claude-invoke": {"secrets": secrets}}}))
    assert chosen(tmp_path, home) == endpoint


def test_an_agent_of_the_installation_goes_where_it_says(tmp_path: Path, home: HomeLayout) -> None:
    write_helper(home.global_agents / "helper", STRANGER)
    assert chosen(tmp_path, home) == STRANGER


def test_without_a_key_the_conversation_and_the_tools_are_at_stake(
    tmp_path: Path, home: HomeLayout, of_workspace: Path
) -> None:
    write_helper(of_workspace, "http://192.168.1.5:11434/v1", "ollama")
    with pytest.raises(EndpointUntrusted):
        chosen(tmp_path, home, {})


@pytest.mark.parametrize(
    "host",
    ["abc123.execute-api.us-east-1.amazonaws.com", "evil.s3.amazonaws.com", "evil.elb.us-east-1.amazonaws.com",
     "bedrock-runtime.us-east-1.amazonaws.com.evil.example", "bedrock-runtime.evil.us-east-1.amazonaws.com"],
)  # fmt: skip
def test_hosts_of_the_cloud_s_customers_are_strangers(
    tmp_path: Path, home: HomeLayout, of_workspace: Path, host: str
) -> None:
    write_helper(of_workspace, f"https://{host}", "aws-bedrock-claude-invoke")
    secrets = {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "hidden"}
    home.settings_yaml.write_text(yaml.safe_dump({"models": {"aws-bedrock-claude-invoke": {"secrets": secrets}}}))
    with pytest.raises(EndpointUntrusted):
        chosen(tmp_path, home)
