"""`make bench-turns`: what a turn costs in commits, how many stream at once, how fast one starts and is stopped."""
