"""The pages that need no token: they hold nothing about any store."""

from coord.transports.hub.request import Response

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
LOGIN = """<!doctype html>
<html lang="en" data-theme="auto">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Log in · coord</title>
<link rel="stylesheet" href="/static/style.css">
<script src="/login.js" defer></script>
</head>
<body>
<main class="stranger"><section class="panel"><h1>Log in</h1>
<p id="note">Run <code>coord open</code> in a terminal for a link that logs you in.</p></section></main>
</body>
</html>
"""
LOGIN_SCRIPT = """"use strict";
// The secret is behind "#", which browsers send to nobody; it leaves the history before it is used.
const once = location.hash.slice(1);
history.replaceState(null, "", "/login");
const say = (text) => { document.getElementById("note").textContent = text; };
if (once) {
  fetch("/login", {
    method: "POST",
    headers: {"Content-Type": "application/json"},
    body: JSON.stringify({once}),
  }).then((answer) => {
    if (answer.ok) location.replace("/");
    else say("This link was used already, or is older than two minutes. Run coord open again.");
  }, () => say("The hub does not answer. Start it with coord serve."));
}
"""


def html(text: str) -> Response:
    """Return a page; nothing may be loaded into it but our own scripts."""
    return Response(200, text.encode(), "text/html; charset=utf-8", {"Content-Security-Policy": CSP})


def script(text: str) -> Response:
    """Return a script."""
    return Response(200, text.encode(), "text/javascript; charset=utf-8")
