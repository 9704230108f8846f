"""Entries of the supervised processes: the web server, a worker, beat, and the guard of the bundled Redis server."""
