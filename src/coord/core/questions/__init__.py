"""Questions of agents to people: asked, answered once or withdrawn, never answered late.

May import: messages, tokens, sessions, limits. Must not import: locks, tasks (they end questions).
Start reading at questions.py and answer.py.
"""
