"""`coord top`: a live view of sessions, locks, tasks and messages.

`snapshot.py` reads the store, `frame.py` makes lines of what was read, and `screen.py` shows them on the
terminal until the user quits. Only `screen.py` touches the terminal. Start reading at `screen.py`.
"""
