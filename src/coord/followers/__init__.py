"""Programs that follow the log: they keep something up to date, and decide nothing.

A follower reduces the events of the log to a state, and may have effects (a file, a webhook). `follower.py`
says what one is; `runner.py` reads the log for several of them; `registry.py` names them all; `direct.py`
runs those that are switched on in a process that uses the store itself. The hub runs them as well
(`transports/hub/followers.py`), and `coord follow NAME` alone.

May import: integrations and everything below. Read `follower.py` first.
"""
