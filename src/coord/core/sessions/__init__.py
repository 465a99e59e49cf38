"""Sessions: which session calls, whether it is alive, and what it reports about itself.

May import: limits. Must not import: messages, locks, tasks (they build on sessions).
Start reading at identify.py: every command in the name of a session passes `ensure_session`.
"""
