"""Administration of stores: prepare one for use (install.py), move a repository to another (migrate.py).

May import: client, host, stores, core. Must not import: reports, worker. Only setup commands use it.
"""
