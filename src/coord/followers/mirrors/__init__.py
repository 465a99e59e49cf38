"""Mirrors: files that show the store in the layouts of the founding documents.

They go one way. coord writes them and never reads them as truth: a change by anybody else is reported and
overwritten. `mirror.py` is the follower, and what switches it on and off. `contract.py`, `claude_coord.py`
and `agent_claims.py` say what the files contain, `present.py` what they are rendered from. `writer.py`
writes them, and knows from a manifest beside the store (`state.py`) what coord wrote before.

May import: integrations and everything below. Read `mirror.py` first.
"""
