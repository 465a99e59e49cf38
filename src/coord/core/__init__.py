"""Every rule of coord: pure functions over records, one package per domain.

May import: the standard library and msgspec. Must not use I/O, clocks, randomness or threads: times, ids and
facts about processes arrive as data. Start reading at transaction.py, then at a domain (locks/acquire.py).
"""
