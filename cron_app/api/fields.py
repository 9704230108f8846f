"""Fields of a job's body. Nothing is converted: a number in place of a text is told, and not made one."""

import math
from datetime import datetime
from typing import Any

from rest_framework import serializers
from rest_framework.fields import empty

from cron_app.job_view import from_ms
from halo_project.errors import BadRequest
from sessions_app.log.encode import column_text

_SECONDS_BELOW = 10_000_000_000  # as seconds the year 2286, as milliseconds April 1970
_END_MS = 253_370_764_800_000  # the year 9999, which leaves room for a time zone's offset


class PlainField(serializers.Field):
    """A value of one type. `meant` says which, in the refusal."""

    meant = ""

    def __init__(self, **kwargs: Any):
        super().__init__(required=False, **kwargs)

    def run_validation(self, data: Any = empty) -> Any:
        if data is not empty and not (data is None and self.allow_null) and not self.is_right(data):
            either = " or null" if self.allow_null else ""
            raise BadRequest(f"{self.field_name} must be {self.meant}{either}", code="invalid")
        return super().run_validation(data)

    def is_right(self, data: Any) -> bool:
        raise NotImplementedError

    def to_internal_value(self, data: Any) -> Any:
        return data


class TextField(PlainField):
    """Cleaned here already: what is refused may be repeated in the answer, which could not be written otherwise."""

    meant = "a string"

    def is_right(self, data: Any) -> bool:
        return isinstance(data, str)

    def to_internal_value(self, data: str) -> str:
        return column_text(data)


class FlagField(PlainField):
    meant = "true or false"

    def is_right(self, data: Any) -> bool:
        return isinstance(data, bool)


class ListField(PlainField):
    meant = "a list"

    def is_right(self, data: Any) -> bool:
        return isinstance(data, list)


class MomentField(PlainField):
    """Milliseconds since the epoch, as a number; parts of one are left out."""

    meant = "a number (epoch ms)"

    def is_right(self, data: Any) -> bool:
        return isinstance(data, int | float) and not isinstance(data, bool) and math.isfinite(data)

    def to_internal_value(self, data: Any) -> datetime:
        if 0 < data < _SECONDS_BELOW:
            raise BadRequest(
                f"{self.field_name} would be in 1970: it is milliseconds since then, and this looks like seconds.",
                code="invalid",
            )
        if not 0 <= data < _END_MS:
            raise BadRequest(f"{self.field_name} is no time that can come: milliseconds since 1970.", code="invalid")
        return from_ms(int(data))
