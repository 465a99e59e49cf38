"""nats."""
