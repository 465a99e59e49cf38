"""Reactions: what people want to happen when an event happens (`[[on]]` in `coord.toml`).

`settings.py` reads the tables, `events.py` says which events they mean and puts fields into texts, `queue.py`
has the events that wait for one reaction, `actions.py` performs them (`webhook.py`, `command.py`), and
`follower.py` is the follower that feeds the queues and remembers what is done.

A reaction decides nothing, and nothing waits for it. It happens at least once; each delivery has an id. Read
`follower.py` first.
"""
