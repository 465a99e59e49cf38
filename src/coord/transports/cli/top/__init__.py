"""`coord top` and `coord dashboard`: what all agents do, live or once.

`snapshot.py` reads the store, `sections.py` makes rows of it, `details.py` says everything about one row, and
`actions.py` makes command lines of keys. `view.py` holds what is selected, typed and open: keys go in, lines
come out. Only `screen.py` and `keys.py` know a terminal. Start reading at `screen.py`.

Everything is asked through a `Client` and its log, so a hub makes no difference. Do not call the store here.
"""
