"""What a hook adds to its answer so that its agent knows what others do.

May import: sdk and below. Must not refuse a call, and must not fail one: an agent works without it.
"""
