"""The public HTTP API: routes for commands, for the generation clock, and those of the founding documents.

May import: the hub, sdk, core. Must not: decide anything; a route turns a request into commands and a reply
into a response. Every route is an `Endpoint` of `routes.py`, from which the router, the OpenAPI document and
the tests on all routes are made. Start reading at endpoint.py, then endpoints/commands.py.
"""
