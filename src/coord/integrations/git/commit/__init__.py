"""`coord commit`: commit exactly the files that a session holds.

May import: gate, salvage. Must not touch files or index entries of other sessions.
"""
