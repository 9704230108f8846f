"""Rows about sessions. Content of messages lives in files only; a row here is an index, a queue entry or a lease.

See docs/architecture.md, "Rows that carry the life of a session".
"""

from django.db import models

MAX_COUNT = 2**31 - 1  # what a column of counts holds


class Workspace(models.Model):
    """A folder that agents work on. `path` is its real, absolute path."""

    path = models.TextField(unique=True)
    created_at = models.DateTimeField()
    legacy_imported_at = models.DateTimeField(null=True, blank=True)  # its 1.x halo.db was taken in, once

    def __str__(self) -> str:
        return self.path


class AgentSession(models.Model):
    """One session: identity, title, counters, life-cycle marks. Its words are in the session files."""

    # What a list shows of a row; the key comes with it.
    LISTED = (
        "session_id", "agent_id", "agent_name", "title", "created_at", "updated_at", "exchange_count",
        "parent_session_id", "stopped_at", "archived_at", "context_tokens", "total_output_tokens", "working_dir",
    )  # fmt: skip

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="sessions")
    session_id = models.CharField(max_length=512)
    parent_session_id = models.CharField(max_length=512, null=True, blank=True)
    lost_parent_id = models.CharField(
        max_length=512, null=True, blank=True
    )  # named as parent, but there is no such row
    agent_id = models.CharField(max_length=200)
    agent_name = models.CharField(max_length=200, default="")
    leaf_key = models.CharField(max_length=200)  # lower-case leaf: it names the files, also on case-folding disks

    description = models.TextField(default="", blank=True)
    title = models.TextField(null=True, blank=True)
    exchange_count = models.IntegerField(null=True, default=0)  # null: a 1.x row whose count nobody knows yet
    context_tokens = models.IntegerField(default=0)
    total_output_tokens = models.IntegerField(default=0)
    output = models.TextField(null=True, blank=True)
    last_activity_at = models.CharField(max_length=40, null=True, blank=True)  # ISO, as in the original
    access_level = models.CharField(max_length=20, default="full")
    working_dir = models.TextField(null=True, blank=True)
    reply_to = models.JSONField(null=True, blank=True)
    stopped_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    run_workspace = models.TextField(null=True, blank=True)  # an internal agent's: the folder its tools work on
    cut_offs = models.IntegerField(default=0)  # runs that died since a round last came to its end
    generation = models.BigIntegerField(default=0)  # counts lease holders, never reset
    deleting = models.BooleanField(default=False)  # tombstone: writers must not write any more
    last_stamp_ms = models.BigIntegerField(default=0)  # arrival stamps are monotonic per session
    event_seq = models.BigIntegerField(default=0)  # last `seq` a holder published before it released

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "session_id"], name="session_unique"),
            models.UniqueConstraint(fields=["workspace", "agent_id", "leaf_key"], name="session_files_unique"),
        ]
        indexes = [
            models.Index(
                fields=["workspace", "-updated_at", "-id"],
                name="session_list_roots",
                condition=models.Q(parent_session_id__isnull=True),
            ),
            models.Index(fields=["workspace", "parent_session_id"], name="session_children"),
        ]

    def __str__(self) -> str:
        return self.session_id


class QueuedMessage(models.Model):
    """One thing said to a session and not yet landed in its files, or a control that has a place in that order.

    Its commit is the acknowledgement to the sender. Once landed, folded or dropped, text and images are cleared.
    """

    class Kind(models.TextChoices):
        PERSON = "person"
        AGENT = "agent"
        BRIEF = "brief"  # what a sub-session was started for
        NUDGE = "nudge"
        CRON = "cron"
        CONTROL = "control"

    class State(models.TextChoices):
        QUEUED = "queued"
        LANDED = "landed"
        FOLDED = "folded"
        DROPPED = "dropped"
        FAILED = "failed"
        HELD = "held"  # a nudge that still gathers what it tells; becomes queued with the tree's last dead run

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="queue")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    text = models.TextField(default="", blank=True)
    images = models.JSONField(default=list, blank=True)  # [{"path": relative to the workspace, "mimeType": …}]
    source_session_id = models.CharField(max_length=512, null=True, blank=True)
    stamp_ms = models.BigIntegerField()
    row_id = models.CharField(max_length=64)
    client_msg_id = models.CharField(max_length=200, null=True, blank=True)
    origin = models.CharField(max_length=300, null=True, blank=True, unique=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    control = models.CharField(max_length=20, default="", blank=True)  # stop | interrupt | compact
    control_round = models.CharField(max_length=80, default="", blank=True)  # the round a control was aimed at
    error = models.TextField(default="", blank=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "client_msg_id"],
                name="queued_client_msg_unique",
                condition=models.Q(client_msg_id__isnull=False),
            ),
        ]
        indexes = [
            models.Index(fields=["session", "id"], name="queued_open", condition=models.Q(state="queued")),
            models.Index(fields=["session"], name="queued_held", condition=models.Q(state="held")),
        ]


class SessionRun(models.Model):
    """The lease on a session's files, and the ledger of runs: the row exists exactly while it is held."""

    class Kind(models.TextChoices):
        TURN = "turn"
        CLI = "cli"
        MAINTENANCE = "maintenance"

    session = models.OneToOneField(AgentSession, on_delete=models.CASCADE, related_name="run")
    run_id = models.UUIDField()
    kind = models.CharField(max_length=12, choices=Kind.choices)
    # Token of the process; null: given up in good order, say by a shutdown; empty: given up after a fault.
    owner = models.CharField(max_length=64, null=True, blank=True)
    host = models.CharField(max_length=120)
    pid = models.IntegerField()
    pid_started = models.CharField(max_length=40)
    generation = models.BigIntegerField()
    heartbeat_at = models.DateTimeField()
    facts = models.JSONField(null=True, blank=True)  # what the present round answers: `lease.RoundFacts`; null: nothing
    takeovers = models.IntegerField(default=0)
    deaths = models.IntegerField(default=0)  # those of the takeovers that followed a crash or a fault
    recovering = models.BooleanField(default=False)  # taken over, and its tree not yet put in order
    told = models.BooleanField(default=False)  # its tree was told of its death before it was put in order
    round = models.IntegerField(default=0)
    commands = models.JSONField(default=list, blank=True)  # [[pgid, start time]] of running shell commands
    deleting_rows = models.JSONField(default=list, blank=True)  # rows a maintenance run takes out of both logs
    acquired_at = models.DateTimeField()
