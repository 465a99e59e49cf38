"""`coord work`: claim tasks one after the other and run a command for each.

May import: handlers, the SDK's worker. No process that a command starts may outlive its task (reaper.py and
the watchdog).
Start reading at run.py.
"""
