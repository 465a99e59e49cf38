"""Hooks of agent tools, answered by the hub as the hook program itself answers them.

`exchange.py` reads what `integrations/hooks/hub_client.py` sends; `answers.py` runs the handler of hooks in a
thread; `routes.py` are the routes. The hub answers only what it can answer exactly as the hook would. It
refuses everything else, and the hook then answers itself.
"""
