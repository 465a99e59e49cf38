"""What a process finds around itself: the environment it acts for, and the hub of its user.

Hooks import this package before anything else, so it imports only what Python has loaded already.
"""
