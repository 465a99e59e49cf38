"""Messages between sessions: an inbox in order for each; a broadcast is one record with its recipients.

May import: sessions, limits. Must not import: locks, tasks (they send messages through `notify`).
Start reading at send.py and receive.py.
"""
