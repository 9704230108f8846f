"""Taking in the schedules of the original program: its `cron.db`, which is only read."""
