"""locks."""
