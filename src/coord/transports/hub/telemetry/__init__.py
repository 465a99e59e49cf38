"""Telemetry of agent tools: OTLP over HTTP, of which only the counts of tokens and money are kept.

`routes.py` answers, `json_form.py` and `protobuf_form.py` read the two encodings, `reports.py` knows what
each tool sends, and `gather.py` writes the sums to the store. No text of a prompt leaves the readers.
"""
