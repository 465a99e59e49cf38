"""Claims, lock waits, locks and merges as spans of OpenTelemetry, sent to one collector.

Off until a person names the collector: `[telemetry] traces = "http://127.0.0.1:4318"`. Read `spans.py` first:
an event becomes a span, and nothing else is needed. This may import followers and what is below them.
"""
