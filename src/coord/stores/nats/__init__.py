"""The NATS backend: streams of JetStream, any number of machines, log-structured.

May import the contract, `stores.log` and `stores.server`; no other backend imports it. It needs no driver:
protocol.py speaks the NATS protocol, jetstream.py the requests of JetStream. Only entries.py knows the
messages of a log. Start reading at database.py, then entries.py and store.py.
"""
