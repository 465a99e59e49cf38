"""Ignored files that are observed all the same. A module without imports, because every hook reads it."""

WATCHED = (".env", ".env.local")
"""The default; `hooks.watched` in `coord.toml` replaces it."""
