"""Read a plan from a file (file.py) and check it (check.py) before its tasks are added.

May import: client, validation, core. Must not import: worker, reports, admin. Neither module opens a store;
`Client.add_tasks` adds the tasks that they return.
"""
