"""Why something does not go on: the chain of reasons, and the one action that frees it.

`commands.py` has the questions: about a task, a lock and a session. `chain.py` collects reasons and follows
sessions; `tasks.py` and `locks.py` begin a chain. Nothing here decides anything: each reason comes from the
rule that refuses, in its own domain. This package is above all others of the core but the brief.
"""
