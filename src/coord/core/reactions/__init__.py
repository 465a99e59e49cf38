"""What reactions do to the store: their outcomes as events, messages of coord itself, decisions of people.

A reaction is an effect of a follower (`coord.followers.reactions`). No rule depends on one. Read `schema.py`
first.

May import: messages, sessions.
"""
