"""The libraries of the page are what their authors published, with their licences, and name no other host."""

import pytest

from coord.transports.hub.page.assets import FOLDER
from tools.vendor_page import CHECKSUMS, FILES, VENDOR, adapt, checksums


def test_the_folder_is_the_one_that_is_served() -> None:
    assert FOLDER / "vendor" == VENDOR


def test_every_file_has_its_checksum() -> None:
    assert (VENDOR / CHECKSUMS).read_text() == checksums(VENDOR)


def test_exactly_what_the_script_copies_is_there() -> None:
    found = {each.relative_to(VENDOR).as_posix() for each in VENDOR.rglob("*") if each.is_file()}
    assert found == {*FILES.values(), CHECKSUMS}
    folders = {each.split("/")[0] for each in FILES.values()}
    assert all((VENDOR / folder / "LICENSE.txt").read_text().strip() for folder in folders)


@pytest.mark.parametrize("name", sorted(each for each in FILES.values() if each.endswith(".js")))
def test_a_module_refers_to_nothing_outside(name: str) -> None:
    text = (VENDOR / name).read_text()
    assert "sourceMappingURL" not in text
    assert "eval(" not in text
    assert "new Function" not in text


def test_a_script_becomes_a_module_and_loses_its_map() -> None:
    assert (
        adapt("a.iife.min.js", b"var uPlot=1;\n//# sourceMappingURL=x.map\n")
        == b"var uPlot=1;\nexport default uPlot;\n"
    )
    assert adapt("a.js", b"export {};\n//# sourceMappingURL=x.map") == b"export {};\n"
