"""Streams of a tenant's log: Server-Sent Events at `/v1/stream`, WebSocket at `/v1/ws`.

Start with `feed.py`: one reader per log fills a window that all subscribers share. `subscription.py` is one
subscriber; `sse.py` and `websocket.py` are the two forms. Nothing here keeps a queue for a single client.
"""
