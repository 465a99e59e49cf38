"""Tokens: what a request over the network may do, until when, and in whose name.

May import: sessions, limits. Must not import: messages, locks, tasks. A token's text is a secret that exists
only where it was created; a record holds its hash. Start reading at text.py (the text) and tokens.py (the
rules); permission.py decides whether a caller may create, rotate or revoke a token, and scope.py keeps any
other command inside the limits of its token.
"""
