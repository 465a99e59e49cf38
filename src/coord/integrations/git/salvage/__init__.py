"""Salvage refs: work that is saved before a file gets another content.

May import: git/run.py, git/changes.py. Must not delete anything that no ref holds.
Start reading at salvage.py; swap.py replaces files, rollback.py salvages the edits under a lost lock.
"""
