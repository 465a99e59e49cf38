"""Worktrees and branches for agents: create, enter, list and clean up.

May import: gate, salvage. Must not remove a worktree with work that no branch and no ref has.
"""
