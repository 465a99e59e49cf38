"""Log-structured stores: the log is stored, and the records are kept in memory by replaying it.

Shared by the backends `memory`, `files`, `nats` and `postgres` (log-structured). May import the contract and
`server.clock`; must not import a backend or do I/O: a subclass of `LogStore` appends and reads.
Start reading at store.py; state.py is the records in memory, snapshot.py saves them.
"""
