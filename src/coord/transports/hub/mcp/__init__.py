"""MCP for agents: six tools and four resources, over the hub's `/mcp` and over `coord mcp`.

May import: the hub, sdk, core, and the handlers of the CLI, whose answers the tools give. Must not: keep
anything between two requests, or decide anything. A session is named in the arguments of a call and never
follows from a connection. Start reading at protocol.py (both eras of MCP), then tools.py; endpoint.py serves
the hub, bridge.py is `coord mcp`, which works without a hub, too.
"""
