"""`halo serve`: starts, watches, restarts and stops the processes of one installation. Imports no Django, to be quick.

The parts: `serve` (order of things), `preflight` (what can be refused before anything starts), `child` (one process),
`watch` (the loop), `startup` (from spawned to ready), `shutdown` (ten seconds at most), `ready_text` (what it prints).
What the processes do is in `halo_project.processes`.
"""
