"""Every time constant of the product in one object, so that tests and drills can scale all of them together."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds, unless the name ends in `_ms`. Values are those of the protocols described in docs/architecture.md."""

    lease_renew: float = 3.0
    lease_belief: float = 30.0
    foreign_host_dead: float = 45.0
    maintenance_dead: float = 600.0
    sweep_every: float = 15.0
    queued_grace: float = 5.0
    stream_coalesce_ms: float = 15.0
    stream_expire: float = 3600.0
    worker_heartbeat: float = 2.0
    worker_dead: float = 8.0
    shutdown_grace: float = 4.0
    row_write: float = 5.0
    nudge_patience: float = 120.0
    keepalive: float = 10.0
    client_silence: float = 180.0
    outbox_every: float = 5.0
    outbox_retry: float = 5.0
    outbox_dead: float = 60.0
    cron_look: float = 15.0
    cron_late: float = 60.0
    cron_run: float = 3600.0
    cron_stop_grace: float = 30.0

    def scaled(self, factor: float) -> "Timing":
        """A copy with every value multiplied; a drill uses 0.1 to see in 6 s what takes a minute."""
        return Timing(**{f.name: getattr(self, f.name) * factor for f in fields(self)})
