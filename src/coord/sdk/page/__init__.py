"""What the page shows, read from a store: now (`snapshot.py`), and at any offset that the log still has
(`past.py`)."""
