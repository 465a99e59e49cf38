"""Alerts about conditions that need attention: raised once, closed true or false, with a record of precision.

May import: lifecycle and everything below. Nothing here changes what a rule about locks or tasks answers.
Start reading at check.py, then rules.py and stuck.py.
"""
