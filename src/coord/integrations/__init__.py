"""Integrations hold coding agents to the locks: agent hooks, shell effects, git gates and their set-up.

Layers: setup > hooks > shell_effects > git. May import sdk and everything below it; nothing here may import
transports. Rules about locks and tasks belong into core; this package only asks and obeys.
Start reading at hooks/main.py (an agent edits a file) or git/gate/main.py (an agent commits).
"""
