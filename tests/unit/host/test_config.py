"""`coord.toml`: bounded in size and depth."""

from pathlib import Path

import pytest

from coord.core.errors import Invalid
from coord.host.config import CONFIGURATION_BYTES_MAX, read_configuration


@pytest.mark.parametrize(
    "text", ["a = 1\n#" + "x" * CONFIGURATION_BYTES_MAX, "a = " + "[" * 20_000, "a = ", "\ud800"]
)
def test_a_bad_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    """Too large, too deep, not TOML, not UTF-8: each is an error that names the file."""
    file = tmp_path / "coord.toml"
    file.write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(Invalid, match=r"coord\.toml cannot be read"):
        read_configuration(str(file))


def test_a_file_is_read(tmp_path: Path) -> None:
    """Its tables; a missing file has none."""
    (tmp_path / "coord.toml").write_text("[store]\nurl = 'memory:'\n")
    assert read_configuration(str(tmp_path / "coord.toml")) == {"store": {"url": "memory:"}}
    assert read_configuration(str(tmp_path / "absent.toml")) == {}
