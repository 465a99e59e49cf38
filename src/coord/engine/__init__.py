"""The engine: turns commands into commits."""
