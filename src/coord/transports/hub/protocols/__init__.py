"""Connections: uvicorn's protocols with limits on sizes, on time, and on what a peer may leave unread.

`http.py` reads requests, `websocket.py` reads messages, `peer.py` asks the kernel who is there, and
`stalled.py` drops connections whose peer stopped reading. Nothing here knows routes or tokens.
"""
