"""Rows of the doors. Login failures are rows, not memory, so that all processes of an installation count together."""

from django.db import models


class LoginFailure(models.Model):
    """The wrong passwords (or tokens) that came from one client address at one door.

    `moments` holds the newest few as milliseconds since the epoch, oldest first. One row per address, because a row can
    be locked: two requests at once must not both see the last free attempt.
    """

    door = models.CharField(max_length=20)
    address = models.CharField(max_length=64)
    moments = models.JSONField(default=list)
    last_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["door", "address"], name="login_failure_unique")]
        indexes = [models.Index(fields=["last_at"], name="login_failure_age")]

    def __str__(self) -> str:
        return f"{self.door} {self.address}"
