"""Routing: which agents a project has, and which one a task suits best.

May import: tasks, locks, messages, sessions, limits. Must not import: plans, lifecycle. Start reading at
router.py. It ranks agents that arrive as data (pool.py collects them); it reads no record and no clock.
"""
