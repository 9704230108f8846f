"""How vendors of the chat completions family differ, as data. One line per vendor; unknown ones get the plain form."""

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class ChatProfile:
    """One endpoint's habits.

    max_tokens_field: the name of the output limit. replay_reasoning: stored thinking goes back as `reasoning_content`
    on every assistant message; where this is False, the field is never sent. thinking: how thinking is asked for.
    """

    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    replay_reasoning: bool = False
    thinking: Literal["effort", "switch", "switch_and_effort", "kimi"] = "effort"
    cache_key: bool = False


_PLAIN = ChatProfile()
_OPENAI = ChatProfile(max_tokens_field="max_completion_tokens")
_DEEPSEEK = ChatProfile("max_completion_tokens", replay_reasoning=True, thinking="switch_and_effort")
_KIMI = ChatProfile("max_completion_tokens", replay_reasoning=True, thinking="kimi", cache_key=True)

_BY_PROVIDER = {
    "deepseek": _DEEPSEEK,
    "kimi": _KIMI,
    "doubao": ChatProfile(replay_reasoning=True, thinking="switch"),
    "zhipu": ChatProfile(replay_reasoning=True, thinking="switch"),
    "hunyuan": ChatProfile(replay_reasoning=True),
}
_BY_HOST = {
    "api.openai.com": _OPENAI,
    "api.deepseek.com": _DEEPSEEK,
    "api.moonshot.cn": _KIMI,
    "api.moonshot.ai": _KIMI,
}


# What endpoints without a profile have shown by refusing a request; kept for the life of the process.
_learnt_replay: dict[tuple[str, str], bool] = {}


def replays_reasoning(profile: ChatProfile, endpoint: str, model: str) -> bool:
    """Whether stored thinking goes back to this model: what it has shown, else what its profile says."""
    return _learnt_replay.get((endpoint, model), profile.replay_reasoning)


def learn_replay(endpoint: str, model: str, replay: bool) -> None:
    _learnt_replay[endpoint, model] = replay


def chat_profile(provider: str, endpoint: str) -> ChatProfile:
    """The provider's profile, else the host's, else the plain one."""
    return _BY_PROVIDER.get(provider) or _BY_HOST.get(urlsplit(endpoint).hostname or "") or _PLAIN
