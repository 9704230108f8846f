"""Session files that a viewer or a script asks for and that cannot be read: one sentence for all of them."""

from collections.abc import Iterator
from contextlib import contextmanager

from halo_project.errors import Unavailable


@contextmanager
def session_files() -> Iterator[None]:
    """Around reading a session's files for somebody outside. Raises Unavailable instead of OSError."""
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"The files of this session cannot be read ({error.strerror or type(error).__name__}). "
            "Put them right, then open the session again.",
            code="session_unreadable",
        ) from error
