"""What a person sees and hears while a command waits or holds locks: a moving line, a bell, a desktop notice.

Nothing here is imported before a command runs on a terminal or holds locks. Start reading at `line.py`.
"""
