"""Claude on Amazon Bedrock: Messages bodies by InvokeModel with a response stream.

The Anthropic SDK's own Bedrock client does it: boto3 finds the credentials and signs, in a thread, and the answer's
event stream is decoded to Messages events. So a call is cancelled like any other, and nothing waits in a thread.
"""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from agents_app.runtimes.anthropic_messages import AnthropicMessages
from agents_app.runtimes.base import ModelRequest
from agents_app.runtimes.wire_runtime import Plan


class BedrockInvoke(AnthropicMessages):
    """See `base.Runtime`."""

    name = "bedrock-invoke"
    sdk = "bedrock"

    def _request(self, request: ModelRequest, plan: Plan) -> tuple[str, dict[str, Any]]:
        body = {"anthropic_version": "bedrock-2023-05-31", **self._body(request, plan)}
        del body["stream"]  # the address says it, and the model
        return f"/model/{quote(body.pop('model'), safe=':')}/invoke-with-response-stream", body

    def _decoded(self, stream: Any) -> AsyncIterator[Any]:
        return aiter(stream)  # the SDK's decoder of the event stream
