"""What holds agents to the protocol from outside: hooks of their tools, gates of git, worktrees."""
