"""Tool call arguments: the text a model wrote becomes an input object, or an error the model is told about.

Arguments that were cut off must never become an empty input that is then run.
"""

import logging
from typing import Any

from agents_app.runtimes.wire import decode_json, encode_body

log = logging.getLogger(__name__)


def parse_tool_input(arguments: str, tool: str) -> tuple[dict[str, Any], str | None]:
    """(input, error). Empty arguments are `{}`; anything but one whole JSON object is `{}` with an error."""
    if not arguments.strip():
        return {}, None
    try:
        value = decode_json(arguments)
    except ValueError as error:
        problem = f"they are not valid JSON ({error})"
    else:
        if isinstance(value, dict):
            return value, None
        problem = "they are not a JSON object"
    log.warning("unusable arguments for tool %s: %s characters, %s", tool, len(arguments), problem)
    return {}, f"The arguments of this {tool} call could not be used: {problem}. The tool was not run. " + (
        "Send the call again with complete JSON."
    )


def argument_text(arguments: Any) -> str:
    """Arguments as text, whatever form they came in: some servers send the object, or what is none, instead of JSON."""
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return encode_body(arguments, "arguments").decode()


def repeats(arguments: str, fragment: str) -> bool:
    """True when `fragment` says again, plainly or as a JSON string, the whole of already complete arguments."""
    if not arguments.rstrip().endswith("}") or fragment.lstrip()[:1] not in ("{", '"'):
        return False
    try:
        said = decode_json(fragment)
        if isinstance(said, str):
            said = decode_json(said)
        return isinstance(said, dict) and said == decode_json(arguments)
    except ValueError:
        return False
