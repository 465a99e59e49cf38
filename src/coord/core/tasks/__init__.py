"""Tasks: who may work on one, under which generation, which result counts, and when a task is ready.

May import: locks, messages, sessions, limits. Must not import: routing, plans, lifecycle (they build on
tasks; dispatch a command to reach them). Start reading at claims.py, whose table shows every transition of a
claim. Records and events are in schema.py, the results that callers get in types.py. A rule reads a task
through `as_of`: a deadline counts once it has passed, whether or not the sweep has recorded it.
"""
