"""Hooks of coding agents: one program for all tools, which says no where another session is at work."""
