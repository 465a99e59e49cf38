"""The brief: what one session has to know about its crew and its project, as data.

May import: every other domain of the core. Must not decide about locks, tasks or
claims. Texts are made in `sdk/brief/`. Start reading at brief.py.
"""
