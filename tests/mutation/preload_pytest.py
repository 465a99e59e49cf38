"""Imports pytest and the drivers for a fork server, but never coord: each run imports its own copy."""

import asyncio  # noqa: F401
import importlib
import sqlite3  # noqa: F401

import hypothesis.stateful  # noqa: F401
import msgspec  # noqa: F401
import psycopg  # noqa: F401
import pymysql  # noqa: F401
import pytest  # noqa: F401
import redis  # noqa: F401
import sortedcontainers  # noqa: F401
from _pytest.config import default_plugins

for name in default_plugins:
    importlib.import_module(f"_pytest.{name}")
