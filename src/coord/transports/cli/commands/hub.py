"""Commands about the hub."""

from coord.transports.cli.spec import CommandSpec, Flag

COMMANDS = (
    CommandSpec(
        "serve",
        "serve this repository and others: socket, HTTP, MCP",
        handler="coord.transports.hub.command:serve",
        examples=(
            "coord serve",
            "coord serve --listen 0.0.0.0:7420 --tls-cert hub.pem --tls-key hub.key --host hub.example.com",
            "coord serve --status",
            "coord serve --stop",
        ),
        connects=False,
        flags=(
            Flag("socket", "the unix socket (default: where clients look)", "PATH"),
            Flag("listen", "the TCP address; - for none (default 127.0.0.1:7420)", "HOST:PORT"),
            Flag("tls-cert", "serve HTTPS with this certificate", "FILE"),
            Flag("tls-key", "the key of the certificate", "FILE"),
            Flag("behind-proxy", "a proxy in front of the hub adds TLS"),
            Flag("host", "names of this hub, with port, separated by commas", "NAMES"),
            Flag("rate", "requests a second for each token (default 20000)", "N", "number", default=0),
            Flag("idle", "end after DURATION without a request", "DURATION", "duration", default=None),
            Flag("status", "show the hub that runs"),
            Flag("stop", "end the hub that runs, and wait for its end", excludes="status"),
            Flag("reload", "let the hub read its configuration again", excludes="stop"),
        ),
        details="Runs in the foreground and prints one line of JSON when it is ready. TCP always needs a "
        "token. Commands and hooks of this user find the socket by themselves, and work "
        "without the hub if it is gone.",
    ),
    CommandSpec(
        "mcp",
        "serve MCP on standard input and output, for an agent",
        handler="coord.transports.hub.mcp.bridge:bridge",
        examples=("coord mcp",),
        connects=False,
        details="Agents start it once it is in their settings (claude mcp add coord -- coord mcp). It passes "
        "messages on to the hub if one runs, and works without one.",
    ),
    CommandSpec(
        "open",
        "print a link that logs a browser in, once",
        handler="coord.transports.hub.browser.command:open_page",
        examples=("coord open", "coord open --role view --expires 1h", "coord open --browser"),
        flags=(
            Flag(
                "role",
                "what the page may do (default operate)",
                "ROLE",
                choices=("view", "operate", "admin"),
                default="operate",
            ),
            Flag("expires", "log out after DURATION (default 12h)", "DURATION", "duration", default=43200.0),
            Flag("browser", "open it in the browser"),
        ),
        details="The link works once, for two minutes, on the hub that runs for this user. Its secret is "
        "behind #, which browsers send to nobody. coord token list shows the token; revoking it logs out.",
    ),
)
