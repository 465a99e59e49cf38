"""Check arguments of callers before they become part of a command.

May import: core. Must not import: any other package of the sdk. Each function returns the checked value or
raises `Invalid` with a hint that describes a valid value. Start reading at arguments.py.
"""
