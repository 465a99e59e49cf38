"""The SQLite backend: one file, any number of processes of one machine, table-based.

May import the contract and `stores.local`; no other backend imports it. SQL is in statements.py only.
Start reading at store.py: `SqliteStore` is the contract, `SqliteDatabase` owns the connection.
"""
