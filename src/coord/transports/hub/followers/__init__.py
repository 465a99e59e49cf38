"""Followers of the log in a hub: `run.py` runs them for every log that is open."""
