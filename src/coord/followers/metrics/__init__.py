"""Metrics that follow the log: counters and histograms that survive a restart.

`counts.py` counts events (the reducer); `families.py` says which metrics there are; `gauges.py` asks the
store for what is now; `text.py` writes both as Prometheus reads them.
"""
