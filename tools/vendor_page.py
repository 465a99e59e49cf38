"""Copy the page's JavaScript libraries into `vendor/`: `python -m tools.vendor_page`.

npm fetches the versions below into a temporary folder; what the page needs is copied as it is, without the
references to source maps, and `checksums.txt` has the SHA-256 of every file. Run it to take a newer version.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "src/coord/transports/hub/page/static/vendor"
CHECKSUMS = "checksums.txt"
VERSIONS = {"lit-html": "3.3.3", "@preact/signals-core": "1.14.5", "uplot": "1.6.32"}
FILES = {
    "lit-html/LICENSE": "lit-html/LICENSE.txt",
    "lit-html/lit-html.js": "lit-html/lit-html.js",
    "lit-html/directive.js": "lit-html/directive.js",
    "lit-html/directive-helpers.js": "lit-html/directive-helpers.js",
    "lit-html/async-directive.js": "lit-html/async-directive.js",
    "lit-html/directives/repeat.js": "lit-html/directives/repeat.js",
    "lit-html/directives/keyed.js": "lit-html/directives/keyed.js",
    "lit-html/directives/live.js": "lit-html/directives/live.js",
    "lit-html/directives/guard.js": "lit-html/directives/guard.js",
    "lit-html/directives/ref.js": "lit-html/directives/ref.js",
    "@preact/signals-core/LICENSE": "signals-core/LICENSE.txt",
    "@preact/signals-core/dist/signals-core.mjs": "signals-core/signals-core.js",
    "uplot/LICENSE": "uplot/LICENSE.txt",
    "uplot/dist/uPlot.iife.min.js": "uplot/uplot.js",
    "uplot/dist/uPlot.min.css": "uplot/uplot.css",
}
_SOURCE_MAP = re.compile(rb"\n?//# sourceMappingURL=\S+\s*\Z")


def adapt(name: str, data: bytes) -> bytes:
    """Return a file as we serve it; uPlot has no minified module, so its script becomes one."""
    data = _SOURCE_MAP.sub(b"\n", data)
    return data + b"export default uPlot;\n" if name.endswith("iife.min.js") else data


def checksums(folder: Path) -> str:
    """Return a line for each file of a folder, as `sha256sum` writes it."""
    found = sorted(each for each in folder.rglob("*") if each.is_file() and each.name != CHECKSUMS)
    lines = [
        f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.relative_to(folder).as_posix()}"
        for each in found
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    npm = shutil.which("npm")
    if npm is None:
        print("npm is missing: install Node.js", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        wanted = [f"{name}@{version}" for name, version in VERSIONS.items()]
        command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", folder, *wanted]
        subprocess.run(command, check=True, stdout=sys.stderr)
        shutil.rmtree(VENDOR, ignore_errors=True)
        for source, target in FILES.items():
            path = VENDOR / target
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(adapt(source, Path(folder, "node_modules", source).read_bytes()))
    (VENDOR / CHECKSUMS).write_text(checksums(VENDOR))
    print(checksums(VENDOR), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
