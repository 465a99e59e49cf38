"""Parts of stores on one machine: its clock, a fair lock between processes, wakeups, its file systems.

Used by `files` and `sqlite`; other layers use the lock, the backoff and the folders. May import nothing of
coord but `stores.health` and `core.errors`; must not know records or logs. Start reading at fair_lock.py.
"""
