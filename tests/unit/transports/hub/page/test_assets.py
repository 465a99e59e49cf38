"""The files of the page: those that were there at the start, public, compressed, and with an ETag."""

import gzip
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from coord.transports.hub.page import assets as module
from coord.transports.hub.page.assets import (
    CSP,
    FOLDER,
    ROUTES,
    TYPES,
    assets,
    find_assets,
    page_id,
    style_files,
)
from tests.support.hub.site import Site, open_site

BUDGET_BYTES = 150 * 1024
HERE = Path(__file__).parent
NODE = shutil.which("node") or ""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as found:
        yield found


@pytest.mark.parametrize("route", ROUTES)
def test_every_address_delivers_the_page(site: Site, route: str) -> None:
    path = route.replace("{address...}", "shop/A-1")
    plain, known = site.ask("GET", path), site.ask("GET", path, site.token())
    assert (plain.status, plain.body) == (200, known.body)
    assert plain.header("content-type") == "text/html; charset=utf-8"
    assert plain.header("content-security-policy") == CSP
    assert plain.header("cache-control") == "no-cache"


def test_the_policy_allows_nothing_inline_and_nothing_foreign() -> None:
    assert "unsafe" not in CSP
    assert "http" not in CSP
    assert "*" not in CSP
    assert "default-src 'none'" in CSP
    assert "require-trusted-types-for 'script'" in CSP


def served(name: str) -> bytes:
    """Return a file as it is to be served: our own without comments and indentation."""
    if name == "style.css":
        return b"".join(style(path) for path in style_files())
    data = (FOLDER / name).read_bytes()
    if name.startswith("vendor/") or not name.endswith(".js"):
        return data
    lines = [line.lstrip(b" \t") for line in data.split(b"\n")]
    return b"\n".join(b"" if line.startswith(b"//") else line for line in lines)


def style(path: Path) -> bytes:
    if "vendor" in path.parts:
        return path.read_bytes()
    lines = re.sub(rb"/\*[^*]*\*/", b"", path.read_bytes()).split(b"\n")
    return b"\n".join([each.lstrip() for each in lines if each.strip()]) + b"\n"


def test_each_style_has_its_place_in_the_one_file() -> None:
    """A file that nobody put in order would count after all others, and nobody would know why."""
    names = [path.relative_to(FOLDER).as_posix() for path in style_files()]
    assert [name for name in names if name.startswith("vendor/")] == names[-1:]
    assert {name.partition("/")[2] for name in names[:-1]} == set(module._STYLES)
    assert assets()["style.css"].body.startswith(b":root")


@pytest.mark.skipif(not NODE, reason="node is not installed: the package of your system")
def test_a_module_means_the_same_as_it_is_served() -> None:
    """Each token is the same, also in strings; only lines of markup lose white space at their head."""
    own = [name for name in assets() if name.endswith(".js") and not name.startswith("vendor/")]
    assert len(own) > 40
    pairs = {name: [(FOLDER / name).read_text(), assets()[name].body.decode()] for name in own}
    assert changes(pairs) == {}


@pytest.mark.skipif(not NODE, reason="node is not installed: the package of your system")
@pytest.mark.parametrize(
    ("original", "served"),
    [
        ("const text = `one\n  two`;", "const text = `one\ntwo`;"),
        ("html`<pre>one\n  two</pre>`;", "html`<pre>one\ntwo</pre>`;"),
        ('html`<p title="one\n  two">x</p>`;', 'html`<p title="one\ntwo">x</p>`;'),
        ("html`<p>\n  // said\n</p>`;", "html`<p>\n\n</p>`;"),
        ("one();\n  // two\nthree();", "one();\n"),
    ],
)
def test_what_a_reader_would_miss_is_noticed(original: str, served: str) -> None:
    assert changes({"a.js": [original, served]}) != {}


def changes(pairs: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return what became different in modules; a module that does not parse is a difference, too."""
    command = [NODE, "--expose-internals", str(HERE / "compare_modules.mjs")]
    done = subprocess.run(command, input=json.dumps(pairs), capture_output=True, text=True, check=False)
    found: dict[str, list[str]] = json.loads(done.stdout) if done.returncode == 0 else {"": [done.stderr]}
    return found


def test_no_text_of_a_style_looks_like_a_comment() -> None:
    for path in (FOLDER / "style").glob("*.css"):
        texts = re.findall(r"""(["'])(.*?)\1""", path.read_text())
        assert [each for _, each in texts if "/*" in each or "*/" in each] == [], path.name


@pytest.mark.parametrize("name", sorted(assets()))
def test_every_file_is_served_once_it_is_needed(site: Site, name: str) -> None:
    if name == "index.html":
        assert site.ask("GET", f"/static/{name}").status == 404, "it has an address, and its policy, already"
        return
    whole = site.ask("GET", f"/static/{name}")
    assert (whole.status, whole.body) == (200, served(name))
    assert whole.header("content-type") == TYPES[Path(name).suffix]
    zipped = site.ask("GET", f"/static/{name}", Accept_Encoding="br, gzip")
    again = site.ask(
        "GET", f"/static/{name}", Accept_Encoding="br, gzip", If_None_Match=zipped.header("etag")
    )
    assert (again.status, again.body) == (304, b"")
    if zipped.header("content-encoding"):
        assert gzip.decompress(zipped.body) == whole.body
        assert zipped.header("etag") != whole.header("etag")


@pytest.mark.parametrize("accepted", ["", "identity", "br", "gzip;q=0", "gzip; q=0.000", "xgzip"])
def test_who_does_not_take_gzip_gets_plain_text(site: Site, accepted: str) -> None:
    assert site.ask("GET", "/static/app.js", Accept_Encoding=accepted).header("content-encoding") == ""


@pytest.mark.parametrize(
    "path",
    [
        *(
            "../assets.py",
            "..%2Fassets.py",
            "%2e%2e/assets.py",
            "core/../app.js",
            "core",
            "core/",
            "/etc/passwd",
        ),
        *(
            "app.js/",
            "APP.JS",
            "app.js%00",
            "./app.js",
            "vendor/../../__init__.py",
            "%2Fetc%2Fpasswd",
            "~root",
        ),
    ],
)
def test_no_other_name_reaches_a_file(site: Site, path: str) -> None:
    assert site.ask("GET", f"/static/{path}").status in (400, 404)


def test_a_file_is_asked_for_again_at_each_visit_and_sent_if_it_changed(site: Site) -> None:
    """After an upgrade no old module stands beside a new one: a browser may use none without asking."""
    for name in ("app.js", "core/state.js", "style.css"):
        answer = site.ask("GET", f"/static/{name}")
        assert (answer.status, answer.header("cache-control")) == (200, "no-cache")
        etag = answer.header("etag")
        for known, status in ((etag, 304), (f'"old", W/{etag}', 304), ('"old"', 200), ("*", 200), ("", 200)):
            assert site.ask("GET", f"/static/{name}", If_None_Match=known).status == status, known
    assert site.ask("GET", "/").header("cache-control") == "no-cache"


def test_the_name_of_the_page_is_that_of_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page compares it with the one that it was loaded with, and so sees an upgrade."""
    before = page_id.__wrapped__()
    assert before == page_id() != ""
    other = {**module.assets(), "app.js": module.assets()["app.js"]._replace(etag="another")}
    monkeypatch.setattr(module, "assets", lambda: other)
    assert page_id.__wrapped__() != before


def test_head_has_no_body_and_a_range_is_the_whole_file(site: Site) -> None:
    whole = site.ask("GET", "/static/app.js")
    head = site.ask("HEAD", "/static/app.js")
    assert (head.status, head.body, head.header("etag")) == (200, b"", whole.header("etag"))
    part = site.ask("GET", "/static/app.js", Range="bytes=0-3")
    assert (part.status, part.body) == (200, whole.body)


def test_a_link_and_an_unknown_type_are_left_out(tmp_path: Path) -> None:
    secret = tmp_path / "secret.js"
    secret.write_text("secret")
    folder = tmp_path / "static"
    folder.mkdir()
    (folder / "app.js").write_text("1")
    (folder / "link.js").symlink_to(secret)
    (folder / "linked").symlink_to(tmp_path)
    (folder / "notes.key").write_text("private")
    assert list(find_assets(folder)) == ["app.js"]


def test_the_page_stays_small() -> None:
    """What a browser loads for all views, as it travels."""
    size = sum(len(each.compressed or each.body) for each in assets().values())
    assert size < BUDGET_BYTES


def test_no_file_has_inline_code_or_names_another_host() -> None:
    page = (FOLDER / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style", page) == []
    for path in FOLDER.rglob("*"):
        if path.suffix in (".js", ".css", ".html") and "vendor" not in path.parts:
            text = path.read_text()
            named = set(re.findall(r"https?://[\w.]+", text))
            assert named <= {"http://page", "http://report"}, f"{path}: only names that stand for this page"
            assert not re.search(r"(?<![.\w-])style=[\"'$]", text), path
            assert "innerHTML" not in text, path


def test_every_import_leads_to_a_file() -> None:
    for path in FOLDER.rglob("*.js"):
        for name in re.findall(r"""(?:from|import)\s*["']([^"']+)["']""", path.read_text()):
            assert name.startswith("."), f"{path}: {name} needs an import map"
            assert (path.parent / name).resolve().is_file(), f"{path}: {name}"
