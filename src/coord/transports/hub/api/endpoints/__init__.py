"""The handlers of the public API, by subject; each module has a function `endpoints()`.

May import: the package above, but not its routes.py. Start reading at commands.py, then clock.py.
"""
