"""The client: an open store in the name of one session, with one method per command.

May import: validation, log_reader, engine, host, stores, core. Must not import: reports, worker, plans,
admin (they use the client).
Start reading at client.py (connect, Client) and connection.py; locks.py, tasks.py, sessions.py, messages.py
and agents.py hold the methods, waiting.py waits, lease.py renews, blocks.py gives `with` blocks.
"""
