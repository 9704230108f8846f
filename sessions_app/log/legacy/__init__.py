"""Everything that still knows the 1.x session files: one JSON file a session, its archives, and their conversion.

Only this package reads them. It goes when 1.x data is no longer taken in; nothing else then changes but its callers.
"""
