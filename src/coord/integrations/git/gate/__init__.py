"""The git gate: hooks of git that check commits against locks and claims.

May import: git/run.py and the sdk. Agents are refused, people are only warned, except by a shared repository.
Start reading at main.py (started by the stubs), then hooks.py and check.py.
"""
