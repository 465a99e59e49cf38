"""What the page draws: sessions, locks, waits, tasks, questions and alerts, from the log.

Begin with `rules.py`: it says, as data, what each event changes. `state.py` applies that, and so does the
page itself in JavaScript, so that a past state and a live one come from the same lines. `rows.py` reads the
same state from the records, for a log whose beginning is gone.
"""
