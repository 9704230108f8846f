"""Query fields that several routes of sessions take."""

from rest_framework import serializers


class ProjectField(serializers.CharField):
    """`projectId`: the absolute path of a workspace. Whether it is one, the service decides."""

    def __init__(self, **kwargs: object):
        super().__init__(trim_whitespace=False, max_length=4096, **kwargs)


class ClampedField(serializers.IntegerField):
    """A whole number that is moved into its range instead of being refused."""

    def __init__(self, *, low: int, high: int, **kwargs: object):
        super().__init__(**kwargs)
        self.low, self.high = low, high

    def to_internal_value(self, data: object) -> int:
        return max(self.low, min(self.high, super().to_internal_value(data)))


class ProjectFilter(serializers.Serializer):
    """The one query parameter that every route of a session needs."""

    projectId = ProjectField()
