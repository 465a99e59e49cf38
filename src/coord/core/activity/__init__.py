"""What agents do: the actions of the ledger, and the events of edited and read files.

The ledger is a query of the log (`actions.py`), without records. Rules above log files with `files.py`. Only
core/events.py, core/ids.py, core/transaction.py and the records of sessions may be imported here. Start
reading with `actions.py`.
"""
