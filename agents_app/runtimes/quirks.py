"""How vendors deviate from the plain form of their wire protocol, as data: one value for each model that is called.

The values come from the registry's rows (`config.registry_row`); the request builders look at them. What only the
answers of a server can teach is remembered here as well, for the life of the process.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

MaxTokensField = Literal["max_tokens", "max_completion_tokens"]
# How chat completions are asked to think: by an effort, by a switch, by both, or by a switch that only turns it off.
ThinkingForm = Literal["effort", "switch", "switch_and_effort", "off_switch"]
# What a Messages endpoint takes as a cache mark: with a time to live, without one, or none at all.
CacheMark = Literal["ttl", "plain", "none"]
Verbosity = Literal["low", "medium", "high"]


@dataclass(frozen=True, slots=True)
class Quirks:
    """The habits of one model at one vendor.

    max_tokens_field: the name of the output limit in chat completions. replay_reasoning: stored thinking goes back as
    `reasoning_content` on every assistant message. thinking: see `ThinkingForm`. always_thinks: it refuses to be told
    not to. keep_thinking: it must be asked to keep the thinking of earlier turns. cache_key: cache hits are routed by
    the conversation's name. cache_mark: see `CacheMark`. says_off: it thinks unless told not to. aws_signature: without
    a key, requests are signed with the credentials of an AWS account. verbosity: how long the closing answer may be,
    for models that ask.
    """

    max_tokens_field: MaxTokensField = "max_tokens"
    replay_reasoning: bool = False
    thinking: ThinkingForm = "effort"
    always_thinks: bool = False
    keep_thinking: bool = False
    cache_key: bool = False
    cache_mark: CacheMark = "ttl"
    says_off: bool = False
    aws_signature: bool = False
    verbosity: Verbosity | None = None

    def with_changes(self, changes: Mapping[str, Any]) -> "Quirks":
        """The same but for what `changes` names, as a model's row adds to its provider's."""
        return replace(self, **changes)


PLAIN = Quirks()
FLAGS = tuple(each.name for each in fields(Quirks) if each.type is bool)
CHOICES: Mapping[str, tuple[str, ...]] = {
    "max_tokens_field": get_args(MaxTokensField),
    "thinking": get_args(ThinkingForm),
    "cache_mark": get_args(CacheMark),
    "verbosity": get_args(Verbosity),
}

_learnt_replay: dict[tuple[str, str], bool] = {}


def replays_reasoning(quirks: Quirks, endpoint: str, model: str) -> bool:
    """Whether stored thinking goes back to this model: what it has shown, else what its row says."""
    return _learnt_replay.get((endpoint, model), quirks.replay_reasoning)


def learn_replay(endpoint: str, model: str, replay: bool) -> None:
    """A server refused a request because of it: remembered for the life of the process."""
    _learnt_replay[endpoint, model] = replay
