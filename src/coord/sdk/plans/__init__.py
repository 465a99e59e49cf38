"""Plans in files: read them (file.py) and check them (check.py) before their tasks are added.

May import: client, validation, core. Must not import: worker, reports, admin. Neither module opens a store;
`Client.add_tasks` adds what they return.
"""
