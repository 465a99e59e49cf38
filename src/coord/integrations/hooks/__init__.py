"""Hooks of coding agents: lock files before an edit, refuse calls, release locks, deliver messages.

May import: shell_effects, git. Must not import: setup. main.py is started for every tool call, so it imports
nothing for calls that only read, and every other module here imports lazily where that saves time.
Start reading at main.py, then handler.py. messages.py has all texts that agents read.
"""
