"""The hub: the same engine behind a unix socket and HTTP, for all repositories of a user or a company.

May import: every package below. No rule lives here, and nothing here is the truth: killing the hub loses
nothing. A request passes `protocols/` (bytes), `app.py` (checks, routing) and a handler, which turns it
into commands; `stores.py` has the engines. Start reading at app.py; `server.py` is the process.
"""
