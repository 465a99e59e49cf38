"""How a session begins and ends, and what becomes of its locks, claims and messages.

May import every other domain of the core. No other domain imports this one: a rule that has to end a session
dispatches a command. Start reading at register.py and end.py.
"""
