"""`coord merge`: merge branches one at a time, after checking their commits.

May import all other packages of git. No worktree or index is touched before the ref moves.
Start reading at merge.py; scope.py checks commits, tree.py merges in memory, check.py runs the check command.
"""
