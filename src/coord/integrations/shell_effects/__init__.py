"""shell_effects."""
