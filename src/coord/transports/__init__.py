"""Surfaces: they parse what was asked, call the client once, and render the answer."""
