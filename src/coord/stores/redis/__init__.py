"""The Redis backend: keys with one prefix, any number of machines, table-based.

May import the contract, `stores.server` and the driver redis; no other backend imports it. Every change is
one Lua script in scripts.py. A script that fails half way is not rolled back: check everything before the
first write. Start reading at scripts.py, then store.py.
"""
