"""Settings that give providers a key and the address of a model server."""

from typing import Any

import yaml

from halo_project.layout import HomeLayout
from tests.support.model_server import ModelServer
from tests.support.runtime_calls import AWS_KEYS

KEY = "hidden-0123456789abcdef"
BEDROCK = "aws-bedrock-claude-invoke"
_AT_ROOT = ("anthropic", "qwen", BEDROCK)


def point_at(home: HomeLayout, server: ModelServer, *providers: str, **changes: dict[str, Any]) -> None:
    """settings.yaml for these providers; a block of `changes` is laid over its provider's."""
    models = {name: {**settings_of(name, server), **changes.get(name, {})} for name in providers}
    home.settings_yaml.write_text(yaml.safe_dump({"models": models}), encoding="utf-8")


def settings_of(provider: str, server: ModelServer) -> dict[str, Any]:
    return {
        "secrets": AWS_KEYS if provider == BEDROCK else {"api_key": KEY},
        "endpoint": server.url if provider in _AT_ROOT else server.chat_url,
    }
