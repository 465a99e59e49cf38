"""Git as coord uses it: gates that judge commits, scoped commits, worktrees, fenced merges."""
