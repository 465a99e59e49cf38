"""Use a hub: the engine and the log of a store, over a socket.

May import: `host`, `engine`, `stores.contract`, `core`. The client above it uses a remote engine like
its own. No rule lives here: commands go out as data, replies and errors come back. `wire.py` is the format,
which the hub reads and writes too. Start reading at database.py.
"""
