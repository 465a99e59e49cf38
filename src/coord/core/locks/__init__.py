"""Locks on files and names: who holds what, who waits, and how a lock ends.

May import sessions, messages and limits. Must not import tasks, plans or lifecycle: they take
locks, and locks know nothing of them; a rule that has to reach up dispatches a command. Start
reading at acquire.py; the records are in schema.py. Every change to a lock also writes the guard of
its space (locks.py: `touch_guard`), because a refusal relies on it.
"""
