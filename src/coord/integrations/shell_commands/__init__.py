"""What a shell command will do, read from its text before it runs.

`line.py` is the entry: it gives the simple commands of a line, the files that they write, and whether
anything stays unknown. Nothing here guesses: a construct whose meaning depends on the run is unknown, and
`shell_effects` finds its changes afterwards. May import `git`; must not import `hooks`.
"""
