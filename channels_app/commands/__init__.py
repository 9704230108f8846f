"""Slash commands: what a person writes instead of a message, for every door the same. See docs/commands.md.

A door reads the text (`text.read_command`), says who asks (`asking.Caller`), and gives both to `dispatch.dispatch`. It
sends the answer on in its own way and turns to the session or workspace that the answer names. Nothing of this is
written into a session's files.
"""
