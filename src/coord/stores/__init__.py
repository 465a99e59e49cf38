"""Stores: where records and the log live. One package per backend.

May import `core.errors` and `core.ranges`, nothing else of coord. Must not contain a rule: a store does not
know the meaning of its records. Backends do not import each other; they share `log/`, `local/` and `server/`.
Only a backend imports its driver, and only open.py imports backends, on first use.
Start reading at contract.py, then memory.py, the smallest backend; open.py lists the others.
"""
