"""The official SDK as a client of our MCP server: over HTTP with a token, and over `coord mcp`."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

MODES = ("legacy", "auto", "2026-07-28")
PATIENCE_S = 60

Use = Callable[[Client], Awaitable[Any]]


def over_http(url: str, token: str, mode: str, use: Use) -> Any:
    """Return what `use` returns for a client that speaks to a hub."""

    async def run() -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
        ):
            return await use(client)

    return asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


def over_stdio(repository: Path, environ: Mapping[str, str], mode: str, use: Use) -> Any:
    """Return what `use` returns for a client that has started `coord mcp`."""

    async def run() -> Any:
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "coord", "mcp"], env=dict(environ), cwd=repository
        )
        async with Client(stdio_client(server), mode=mode) as client:
            return await use(client)

    return asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
