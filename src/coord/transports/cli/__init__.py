"""The `coord` command: parse a line, run its handler, print the answer.

`commands/` says what a user can type, `handlers/` what it does; a spec names its handler by its dotted path.
Everything is imported on first use, because most processes run one command: keep module-level imports few.
Start reading at main.py, then parser.py and commands/locks.py.
"""
