"""The `coord` command."""
