"""Rows of the doors. Login failures are rows, not memory, so that all processes of an installation count together."""

import uuid

from django.db import models
from django.db.models import Q


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


def new_key() -> str:
    return uuid.uuid4().hex


class OutboxMessage(models.Model):
    """One message to one target, from the commit that owed it until a while after its end. See docs/delivery.md."""

    class State(models.TextChoices):
        QUEUED = "queued"
        SENDING = "sending"  # stored before the platform is called
        SENT = "sent"
        FAILED = "failed"
        UNKNOWN = "unknown"  # it may have been delivered, and cannot be sent again without maybe doubling it

    key = models.CharField(max_length=32, default=new_key, editable=False)  # idempotency key, the same at every try
    origin = models.CharField(max_length=300, unique=True)  # what it answers: owed once, however often it is told
    owner = models.CharField(max_length=200, db_index=True)  # who hears of its end, such as `cron:<run id>`
    channel_type = models.TextField()
    account_id = models.TextField()
    chat_id = models.TextField(null=True, blank=True)
    text = models.TextField()  # with its `MEDIA:` lines
    workspace = models.TextField()  # the folder that attachments may come from
    access = models.CharField(max_length=20)
    facts = models.JSONField(default=dict)

    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    attempts = models.IntegerField(default=0)  # counted as one begins; with the row it names the try
    next_attempt_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(null=True, blank=True)  # of the newest try
    results = models.JSONField(default=list)  # of the text and of each attachment; empty until the end
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["next_attempt_at", "id"], name="outbox_due", condition=Q(state="queued")),
            models.Index(fields=["claimed_at"], name="outbox_sending", condition=Q(state="sending")),
            models.Index(fields=["finished_at"], name="outbox_age", condition=Q(finished_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.origin} {self.state}"
