"""`make chaos`: people, tools and sub-agents at work on a real Halo whose workers and Redis are killed meanwhile.

`script` says what is asked and answered, `people` asks, `faults` breaks things, `verdict` reads what is left.
"""
