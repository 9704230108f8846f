"""The one base error of the product. Each kind of failure has a stable code that clients may rely on.

Rooms raise these; `halo_project.api_errors` turns them into HTTP answers and the WebSocket door into `error` frames.
The message is shown to a person: it says what is wrong and what to do.
"""


class HaloError(Exception):
    """Base of every error that a person or a client is meant to see.

    code: stable, machine-readable, snake_case. status: the HTTP status of the answer.
    """

    code = "internal"
    status = 500

    def __init__(self, message: str, *, code: str | None = None, status: int | None = None):
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        if status is not None:
            self.status = status


class ConfigurationError(HaloError):
    """The environment or a settings file holds a value we cannot use. Commands print it on one line and exit with 2."""

    code = "configuration"


class BadRequest(HaloError):
    """The request itself is wrong: a missing field, a wrong type, an unsafe id."""

    code = "bad_request"
    status = 400


class NotAuthenticated(HaloError):
    """No valid login came with the request."""

    code = "not_authenticated"
    status = 401


class Forbidden(HaloError):
    """The request is understood and refused: another site's page, or an access level that is too low."""

    code = "forbidden"
    status = 403


class NotFound(HaloError):
    """The thing named in the request does not exist."""

    code = "not_found"
    status = 404


class Conflict(HaloError):
    """The state of the thing does not allow this now; try again later or change the state first."""

    code = "conflict"
    status = 409


class Unavailable(HaloError):
    """A part that is needed (database, Redis, workers) does not answer."""

    code = "unavailable"
    status = 503
