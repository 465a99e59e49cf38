"""One module per coding agent: its payloads become events, our answers become its output.

May import: hooks/events.py. Must not decide anything: handler.py does that for all tools alike.
"""
