"""Write a `coord.toml` as a person who confirms it at once."""

from collections.abc import Mapping
from pathlib import Path

from coord.host.consent import confirm, read_consented
from coord.host.repository import find_repository


def write_configuration(repository: Path, text: str, environ: Mapping[str, str]) -> Path:
    """Write the configuration of a repository and confirm it; return its path."""
    file = repository / "coord.toml"
    file.write_text(text)
    confirm(read_consented(find_repository(str(repository)), environ))
    return file
