"""plan_view."""
