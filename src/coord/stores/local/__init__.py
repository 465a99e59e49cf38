"""Parts of stores on one machine: its clock, a fair lock between processes, wakeups, its file systems.

Used by `files` and `sqlite`; other layers use the lock and the backoff. May import nothing of coord but
`stores.health`; must not know records or logs. Start reading at turn.py.
"""
