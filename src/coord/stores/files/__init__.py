"""The files backend: a folder of log entries on one machine, log-structured.

May import the contract, `stores.log` and `stores.local`; no other backend imports it. Every file operation
goes through io.py: the tests replace it to count syncs and to inject failures.
Start reading at store.py; folder.py shows the layout of a tenant's folder, lock.py what a reader may rely on.
"""
