"""Reports about a store: events and lock periods, metrics, and the checks of `coord doctor`.

May import: client, log_reader, engine, host, stores, core. Must not import: admin, worker.
Reports change nothing. They ask the queries of the core for the present, and log_reader for the past.
Start reading at activity.py.
"""
