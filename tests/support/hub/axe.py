"""axe-core, which finds what keeps people from reading a page: fetched once by npm into a cache folder.

`python -m tests.support.hub.axe` fetches it, for `tools/setup agents`. If it is there, it is silent.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Page

VERSION = "4.14.0"
SHA256 = "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878"
FETCH_S = 300


def axe_file() -> Path:
    """Where the script of this very version is or will be."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "coord-test-tools" / f"axe-core-{VERSION}.min.js"


THEMES: "tuple[tuple[Literal['light', 'dark'], str], ...]" = (
    ("dark", "auto"),
    ("light", "contrast"),
    ("dark", "contrast"),
)
"""Schemes of a system and themes of the page, besides the light one; they differ in colours only."""


COLOUR_RULES = ("color-contrast", "link-in-text-block")


def problems(page: "Page", within: str = "html", *rules: str) -> list[str]:
    """Return what axe finds, a line for each element; by some rules only, if they are named."""
    script = """([within, rules]) =>
      axe.run(within, {resultTypes: ["violations"], ...rules.length && {runOnly: rules}})"""
    found = page.evaluate(script, [within, rules])["violations"]
    return [
        f"{rule['id']}: {node['html'][:200]} {node['failureSummary']}"
        for rule in found
        for node in rule["nodes"]
    ]


def problems_in_themes(page: "Page", within: str = "main, dialog") -> list[str]:
    """Return what axe finds on the page, and what colours are wrong in a part of it in each theme."""
    found = problems(page)
    for scheme, theme in THEMES:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
        rules = (*COLOUR_RULES, *["color-contrast-enhanced"] * (theme == "contrast"))
        found += [f"{scheme} {theme}: {each}" for each in problems(page, within, *rules)]
    page.emulate_media(color_scheme="light")
    page.evaluate("document.documentElement.dataset.theme = 'auto'")
    return found


def axe_script() -> str:
    """Return the script, which must be the one that was chosen; empty where it is not installed."""
    if not axe_file().exists():
        return ""
    data = axe_file().read_bytes()
    assert hashlib.sha256(data).hexdigest() == SHA256, f"{axe_file()} is not axe-core {VERSION}: remove it"
    return data.decode()


def install() -> bool:
    """Fetch the script; False where npm is missing or fails."""
    npm, target = shutil.which("npm"), axe_file()
    if target.exists():
        return True
    if npm is None:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
        command = [npm, "install", *quiet, "--prefix", folder, f"axe-core@{VERSION}"]
        done = subprocess.run(command, stdout=2, timeout=FETCH_S, check=False)
        if done.returncode == 0:
            Path(folder, "node_modules/axe-core/axe.min.js").replace(target)
    return target.exists()


if __name__ == "__main__":
    sys.exit(not install())
