"""Floor 1: how Halo is configured and started. Knows nothing of the floors above but their names."""

VERSION = "2.0.1+py1"
