"""The engine: commands in, commits out.

May import: core, and of the stores the contract and the database, never a backend. Must not decide: rules are
in the core. Start reading at engine.py.
"""
