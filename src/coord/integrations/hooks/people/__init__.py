"""What hooks ask people: permissions of a tool, and agents that have stopped.

May import: what hooks may. Must not decide anything that no person has decided.
Start reading at questions.py.
"""
