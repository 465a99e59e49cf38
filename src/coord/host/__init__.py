"""What this machine knows: its processes, the repository, who calls, and where the store is."""
