"""The two files of a session, `<seg>.ui.jsonl` and `<seg>.raw.jsonl`: reading, appending, rewriting.

Pure: no Django, no lease, no socket. Who may write is decided above; here a writer only notices that somebody else did.
"""
