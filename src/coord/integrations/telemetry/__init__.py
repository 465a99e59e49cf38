"""Usage that agent tools report: public list prices (`models.toml`, `prices.py`) and what to set in tools.

May import: sdk, host, core. The hub receives the reports (`transports/hub/telemetry/`).
"""
