"""The Postgres backend, in two layouts: table-based, and log-structured with the records in memory.

May import the contract, `stores.server`, `stores.log` and the driver psycopg; no other backend imports it.
`table_*` is the table-based layout, `log_*` the log-structured one; the other modules serve both. A commit
must stay one statement: it is its own transaction, so no process can stop with the head row locked.
Start reading at table_statements.py, then table_store.py; log_store.py is the other layout.
"""
