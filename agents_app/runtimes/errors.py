"""What went wrong with a model call, in the few kinds the engine decides by.

`classify` turns any exception of an SDK, of the transport or of a wire event into a ModelError. Structured signals
(HTTP status, error type, exception class) come first; words of the message are read only when there is nothing better.
Knows SDK exceptions by their attributes and class names, so that no SDK is imported here.

ModelError
├── StreamTruncated    the stream ended before its end events (kind network)
└── (kinds)            account · throttled · transient · network · history · image · overflow · fatal
"""

from collections.abc import Iterable
from typing import Any, Literal

from agents_app.runtimes.scrub import scrub
from agents_app.runtimes.signals import NotAStream, Signals, read_signals
from halo_project.errors import HaloError

Kind = Literal["account", "throttled", "transient", "network", "history", "image", "overflow", "fatal"]

_ACCOUNT = {401, 402, 403}
_TRANSIENT = {408, 500, 502, 503, 504, 529}
_TRANSIENT_NAMES = {
    "InternalServerException", "ModelTimeoutException", "ModelStreamErrorException", "ServiceUnavailableException",
    "ModelNotReadyException",
}  # fmt: skip
_ACCOUNT_NAMES = {
    "NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound",
    "AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException",
}  # fmt: skip
# Told with status 429, as if waiting would help.
_QUOTA_TYPES = {"insufficient_quota", "billing_error", "exceeded_current_quota_error"}
_THROTTLED_NAMES = {"ThrottlingException", "TooManyRequestsException"}
_MISCONFIGURED_NAMES = {"UnsupportedProtocol", "LocalProtocolError", "InvalidURL", "SSLCertVerificationError"}
_NETWORK_NAMES = {
    "APIConnectionError", "TransportError", "TimeoutException", "NetworkError", "ProtocolError", "RemoteProtocolError",
    "StreamError", "DecodingError", "ConnectionError", "EndpointConnectionError", "IncompleteReadError",
    "TimeoutError", "OSError", "JSONDecodeError", "UnicodeDecodeError",
    "ChecksumMismatch", "InvalidHeadersLength", "InvalidPayloadLength", "ParserError",
}  # fmt: skip

_IMAGE_WORDS = (
    "multimodal data is corrupted", "could not process image", "image exceeds", "image dimensions exceed",
    "does not match the provided media type", "but the image appears to be", "too many images",
    "unsupported image", "does not represent a valid image",
)  # fmt: skip
# More bytes than any text within a context window: it is the images that make a request so big.
_TOO_BIG = 413
_HISTORY_WORDS = (
    "ids were found without", "without tool_result", "without `tool_result`", "unexpected `tool_use_id`",
    "unexpected tool_use_id", "tool_call_ids did not have response", "must be followed by tool messages",
    "insufficient tool messages", "must be a response to a prece", "tool call result does not follow tool call",
    "number of function response parts", "tool_use` ids must be unique",
)  # fmt: skip
_OVERFLOW_WORDS = (
    "prompt is too long", "input is too long", "too many input tokens", "context_length_exceeded",
    "maximum context length", "exceed context limit", "exceeds the context window", "context window exceeds",
    "input length and `max_tokens` exceed",
)  # fmt: skip
_AWS_WORDS = ("aws credentials", "credentials for bedrock", "unable to locate credentials")
_AWS_ADVICE = (
    "Write access_key_id and secret_access_key, or profile, under `models.{0}.secrets` in settings.yaml, or give this "
    "machine an account as AWS's own tools find it: environment, ~/.aws, or a role."
)
_ACCOUNT_WORDS = (
    "insufficient balance", "insufficient_quota", "suspended", "invalid api key", "invalid x-api-key", "invalid key",
    "unauthorized", "authentication", "incorrect api key", *_AWS_WORDS,
)  # fmt: skip
_THROTTLED_WORDS = ("throttl", "rate limit", "too many requests")
_TRANSIENT_WORDS = ("overloaded", "serviceunavailableexception", "internal server error", "temporarily unavailable")
_NETWORK_WORDS = (
    "fetch failed", "econnreset", "etimedout", "socket hang up", "connection reset", "connection error", "timed out",
    "headers timeout", "peer closed", "server disconnected", "network error",
)  # fmt: skip

# What reading data of an unexpected form ends in: lists for texts, numbers for objects.
_ODD_DATA = (AttributeError, TypeError, KeyError, IndexError, RecursionError)

_HINTS: dict[str, str] = {
    "account": "Check the key, the balance and the permissions of this provider in the settings.",
    "throttled": "The provider limits how often it may be asked.",
    "transient": "The provider has trouble at the moment.",
    "network": "The connection to the provider failed or was cut off.",
}


class ModelError(HaloError):
    """A model call failed. `kind` says what may help; the message is safe to show and holds no key.

    http_status: the vendor's status when one is known. retry_after_s: seconds the vendor asked us to wait.
    """

    code = "model_error"
    status = 502

    def __init__(
        self,
        message: str,
        *,
        kind: Kind,
        http_status: int | None = None,
        error_type: str | None = None,
        retry_after_s: float | None = None,
    ):
        super().__init__(message, code=f"model_{kind}")
        self.kind: Kind = kind
        self.http_status = http_status
        self.error_type = error_type
        self.retry_after_s = retry_after_s

    @property
    def retryable(self) -> bool:
        """True when the same request may work later, unchanged."""
        return self.kind in ("throttled", "transient", "network")


class StreamTruncated(ModelError):
    """The stream ended without the events that end an answer: nothing of it may be taken as final or be run."""

    def __init__(self, message: str):
        super().__init__(message, kind="network")


def classify(
    error: BaseException, *, secrets: Iterable[str] = (), source: str = "The model provider", endpoint: str = ""
) -> ModelError:
    """The ModelError for any failure of a call. `secrets` never appear in its message; `source` begins it."""
    if isinstance(error, ModelError):
        return error
    if isinstance(error, NotAStream):
        return ModelError(scrub(f"{source}: {error}", secrets), kind=error.kind)
    if isinstance(error, _ODD_DATA):
        told = f"{source}: the answer cannot be read ({type(error).__name__}: {error})"
        return ModelError(scrub(told, secrets), kind="transient")
    signals = read_signals(error)
    kind = kind_of(signals)
    return ModelError(
        scrub(_message(signals, kind, source, endpoint), secrets),
        kind=kind,
        http_status=signals.status,
        error_type=signals.error_type,
        retry_after_s=signals.retry_after_s,
    )


def kind_of(signals: Signals) -> Kind:
    return _kind_by_structure(signals) or _kind_by_words(signals) or "fatal"


def _kind_by_structure(signals: Signals) -> Kind | None:
    status, names = signals.status, signals.names
    if status in _ACCOUNT or names & _QUOTA_TYPES or (status is None and names & _ACCOUNT_NAMES):
        return "account"
    if status == 429 or names & _THROTTLED_NAMES:
        return "throttled"
    if status in _TRANSIENT or names & _TRANSIENT_NAMES:
        return "transient"
    if status == _TOO_BIG:
        return "image"
    if status is None and names & _MISCONFIGURED_NAMES:
        return "fatal"
    if status is None and names & _NETWORK_NAMES:
        return "network"
    return None


def _kind_by_words(signals: Signals) -> Kind | None:
    words = signals.message.lower()
    groups: list[tuple[Kind, tuple[str, ...]]] = [
        ("image", _IMAGE_WORDS),
        ("history", _HISTORY_WORDS),
        ("overflow", _OVERFLOW_WORDS),
    ]
    if signals.status is None:
        groups += [
            ("account", _ACCOUNT_WORDS),
            ("throttled", _THROTTLED_WORDS),
            ("transient", _TRANSIENT_WORDS),
            ("network", _NETWORK_WORDS),
        ]
    return next((kind for kind, needles in groups if any(needle in words for needle in needles)), None)


def _message(signals: Signals, kind: Kind, source: str, endpoint: str) -> str:
    if kind == "account" and signals.status is None and any(word in signals.message.lower() for word in _AWS_WORDS):
        return f"{source}: there are no AWS credentials. {_AWS_ADVICE.format(source)}"
    head = source if signals.status is None else f"{source} answered {signals.status}"
    if signals.error_type:
        head += f" ({signals.error_type})"
    hint = _HINTS.get(kind, "")
    if signals.status == 404 or signals.names & _MISCONFIGURED_NAMES:
        hint = f"Check the endpoint{f' ({endpoint})' if endpoint else ''} and the model id."
    elif kind == "network" and endpoint:
        hint = f"Does {endpoint} answer from this machine?"
    return f"{head}: {signals.message or 'no details'}" + (f" — {hint}" if hint else "")


def is_thinking_rejection(error: ModelError) -> bool:
    """True when the vendor refused thinking blocks of the history (no signature, or one of another model)."""
    words = error.message.lower()
    return error.http_status == 400 and "thinking" in words and ("signature" in words or "block" in words)


def is_reasoning_rejection(error: ModelError) -> bool:
    """True when the vendor refused because of `reasoning_content`: it wants it back, or does not know it."""
    return error.http_status in (400, 422) and "reasoning_content" in error.message.lower()


def unreadable_request(path: str, reason: Any) -> ModelError:
    """The request cannot be written as JSON; `path` names the part, e.g. `messages[3].content[0].input`."""
    return ModelError(f"The conversation cannot be sent: {path} is not valid JSON data ({reason}).", kind="fatal")
