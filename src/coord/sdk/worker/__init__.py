"""The worker: claims task after task, keeps each claim alive while a function works on it, and submits.

May import: client, validation, engine, host, stores, core. Must not import: reports, admin.
Start reading at worker.py. A function gets a `Work` (work.py) and ends it by returning or raising.
"""
