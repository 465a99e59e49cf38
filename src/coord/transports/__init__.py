"""The surfaces of coord: today the command line; other transports stand beside `cli/`.

May import: every package below. Must not be imported by any of them.
No rules live here: a transport reads input, calls the SDK and prints the reply. `exit_codes.py` and
`arguments.py` hold what all transports share. Start reading at cli/main.py.
"""
