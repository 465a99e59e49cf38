"""The MySQL and MariaDB backend: four tables of a database, any number of machines, table-based.

May import the contract, `stores.server` and the driver pymysql; no other backend imports it. SQL is in
statements.py, migration.py and views.py only. A commit must stay one packet: a process that stops between two
packets would keep the head row locked. Start reading at statements.py, then store.py.
"""
