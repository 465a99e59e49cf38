"""Stores: where records and the log live. Thin: each knows its engine and the contract in `store.py`."""
