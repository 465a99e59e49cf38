"""Texts that a setup writes into files of others: members of JSON, marked blocks, and guides for agents.

May import core only. Nothing here reads or writes a file. Start reading at marked_block.py.
"""
