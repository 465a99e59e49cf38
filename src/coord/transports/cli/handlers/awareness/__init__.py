"""Handlers of commands that say what others do: briefs, questions, alerts.

May import: what handlers may. Must not decide anything.
"""
