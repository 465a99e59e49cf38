"""Git under coord: gates, commits, merges, worktrees and salvage refs.

Layers: merge > commit | worktree > gate | salvage > run. Must not import: hooks, shell_effects, setup.
Every git process starts in run.py. No function here may lose uncommitted work: salvage it first.
"""
