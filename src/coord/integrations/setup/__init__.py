"""Bringing coord into a repository and out of it again: hook settings, git hooks, texts for agents."""
