"""Changes that shell commands make to files, found by comparing the worktree before and after a command.

May import: git. Must not import: hooks, setup. A session is blamed only with proof (attribution.py); if there
is doubt, both sides are informed and no file is touched. Start reading at observe.py.
"""
