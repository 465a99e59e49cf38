"""Tokens and money that sessions used, for each session and day, task and crew; budgets.

May import: sessions, limits. Must not import: locks, tasks (only the keys of their claims are read).
Start reading at usage.py; counting.py has the sums.
"""
