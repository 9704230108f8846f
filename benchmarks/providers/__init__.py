"""`make bench-providers`: what the runtimes cost beyond the vendors' SDKs, against the model server on loopback."""
