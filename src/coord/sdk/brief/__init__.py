"""The brief of a session as text: CREW_UPDATE for leads and specialists, SUBAGENT CONTEXT for workers.

`crew_update.py` renders, `activity.py` finds what happened lately, `plain_text.py` makes texts of others
harmless. May import: sdk.client and below. Facts come from `core/brief/`; nothing is decided here.
"""
