"""What programs use: the client, the worker, the task coordinator, and reports about a store.

May import: engine, host, stores, core. Must not import: integrations, transports (they are built on the sdk).
A method checks its arguments (validation/), builds one command of the core and returns the reply; rules do
not belong here. Start reading at client/client.py.
"""
