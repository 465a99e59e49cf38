"""`coord init`, `coord uninstall`, `coord gate` and the checks of `coord doctor`.

May import all other integrations. Every edit is planned first (changes.py) and recorded before it is made
(journal.py), so that it can be undone. Start reading at installer.py.
"""
