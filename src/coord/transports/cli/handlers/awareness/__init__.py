"""Handlers of commands that say what others do: briefs, questions, alerts, followers of the log.

May import: what handlers may. Must not decide anything.
"""
