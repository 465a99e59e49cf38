"""What each command does: one module per group, one function per command.

A handler takes a client (or the global options) and its typed arguments, and returns an `Answer`.
Rules belong in the core, not here. Imports that only some commands need stand inside the functions.
Start reading at locks.py.
"""
