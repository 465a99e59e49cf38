"""Parts of stores on a server: the server's clock, a listener for waiters, what a fork means for connections.

Used by `postgres`, `mysql`, `redis` and `nats`. May import the contract and `stores.database`; must not
import a driver or a backend. Start reading at database.py.
"""
