"""How a tool says that it did not do its work: exceptions here, turned into a result for the model by `base.BaseTool`.

The first line of such a result is a marker the chat page colours by: an error is a failure, a warning a problem that
the tool noticed itself and that the model can put right (a bad argument, a file that is too big).
"""

import errno
import os

from halo_project.errors import HaloError

ERROR_MARKER = "__TOOL_ERROR__"
WARN_MARKER = "__TOOL_WARN__"


class ToolProblem(HaloError):
    """Raised inside a tool; the message is what the model reads after the marker line. Never leaves `Tool.run`."""

    code = "tool_problem"
    status = 400
    marker = ERROR_MARKER

    def text(self) -> str:
        return f"{self.marker}\n{self.message}"


class ToolFailure(ToolProblem):
    """The work was tried and failed, or the access level forbids it."""

    code = "tool_failed"


class ToolWarning(ToolProblem):
    """The tool refused for a reason that another call can avoid."""

    code = "tool_warning"
    marker = WARN_MARKER


def failure_of(error: OSError, action: str, shown: str) -> ToolFailure:
    """An operating system error as the model sees it: `Error: ENOENT: no such file or directory, open 'path'`."""
    number = error.errno
    if number is None:
        return ToolFailure(f"Error: {error}, {action} '{shown}'")
    reason = os.strerror(number)
    return ToolFailure(
        f"Error: {errno.errorcode.get(number, number)}: {reason[:1].lower()}{reason[1:]}, {action} '{shown}'"
    )
