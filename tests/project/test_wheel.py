"""The wheel: what is inside, what it requires, and that an install without extras is a complete tool."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

import pytest

import coord
from coord.core.routing.router import rules_from
from coord.host.config import read_configuration
from coord.host.consent import Configuration
from coord.integrations.hooks.config import read_settings
from coord.sdk.plans.check import check_plan
from coord.sdk.plans.file import read_plan

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(coord.__file__).parent
EXAMPLES = PACKAGE / "examples"
FOR_DEVELOPERS = {"bench", "demo", "dev"}
"""Extras that a user of coord does not need."""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as `pip install .` builds it, without a network."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def metadata(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    """What the wheel says about itself."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    (information,) = folder.glob("*.dist-info")
    return Distribution.at(information)


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    """Modules, schemas and examples are in the wheel, and nothing beside the package is."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "src/coord"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    tracked = {name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()}
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert inside == {name.removeprefix("src/") for name in tracked}
    assert {"coord/py.typed", "coord/examples/plan.yaml", "coord/schemas/lock.json"} <= inside


def test_all_has_every_extra_for_users(metadata: Distribution) -> None:
    """`coord[all]` installs each driver; whatever extra comes later belongs to it, too."""
    extras = set(metadata.metadata.get_all("Provides-Extra") or ())
    drivers = [_required(metadata, extra) for extra in extras - FOR_DEVELOPERS - {"all"}]
    assert _required(metadata, "all") == set().union(*drivers)
    assert _required(metadata, "postgres")
    assert "yaml" not in extras
    assert metadata.version == coord.__version__
    assert [(each.name, each.value) for each in metadata.entry_points] == [
        ("coord", "coord.transports.cli.main:run")
    ]


def _required(metadata: Distribution, extra: str) -> set[str]:
    """Return what an extra adds to the requirements of the package."""
    lines = [line.partition(";") for line in metadata.requires or ()]
    return {line.strip() for line, _, marker in lines if marker.strip() == f"extra == '{extra}'"}


@pytest.fixture
def installed(wheel: Path, metadata: Distribution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a program in a new repository, where only the wheel and what it requires is installed."""
    for name in list(os.environ):
        if name.startswith(("COORD_", "CLAUDE", "GIT_", "PYTHON")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    environment = tmp_path / "environment"
    venv.create(environment)
    monkeypatch.setenv("PATH", f"{environment}/bin{os.pathsep}{os.environ['PATH']}")
    install = ["--python", f"{environment}/bin/python", "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *install], check=True)
    (packages,) = environment.glob("lib/*/site-packages")
    for line in metadata.requires or ():
        if ";" not in line:
            _link(distribution(re.split(r"[^\w.-]", line)[0]), packages)
    repository = tmp_path / "shop"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)

    def run(*words: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(words, cwd=repository, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done

    return run


def _link(required: Distribution, packages: Path) -> None:
    """Make a package of this environment visible in another one."""
    for top in {file.parts[0] for file in required.files or () if file.parts[0] not in ("..", "__pycache__")}:
        (packages / top).symlink_to(str(required.locate_file(top)))


@pytest.mark.long
def test_an_install_without_extras_is_a_complete_tool(installed: Run, tmp_path: Path) -> None:
    """Decision 0038: store, locks, a plan in YAML and a worker: all from the wheel and its requirements."""
    answer = json.loads(installed("python", "-m", "coord", "version").stdout)
    folder = Path(answer["folder"])
    assert folder.is_relative_to(tmp_path)
    installed("coord", "init", "--yes")
    installed("coord", "--session", "s-ada", "lock", "src/app.py")
    installed("coord", "--session", "s-bob", "check", "src/app.py", code=1)
    shutil.copy(folder / "examples" / "coord.toml", tmp_path / "shop")
    loaded = installed("coord", "plan", "load", str(folder / "examples" / "plan.yaml"))
    assert len(json.loads(loaded.stdout)["added"]) == 5
    agent = tmp_path / "environment" / "bin" / "claude"
    agent.write_text('#!/bin/sh\necho \'{"by": "an agent"}\' > "$COORD_RESULT_FILE"\n')
    agent.chmod(0o755)
    installed("sh", str(folder / "examples" / "work.sh"))
    tasks: list[dict[str, Any]] = json.loads(installed("coord", "task", "list").stdout)["tasks"]
    assert [task["state"] for task in tasks] == ["done"] * 5


def test_the_example_of_a_plan_has_no_problem() -> None:
    """Who copies the example gets no complaint, and no warning."""
    checked = check_plan(read_plan(str(EXAMPLES / "plan.yaml")))
    assert (checked.problems, checked.warnings) == ([], [])


def test_the_example_of_settings_is_understood() -> None:
    """Each table of the example is accepted by the code that reads it."""
    file = str(EXAMPLES / "coord.toml")
    settings = read_configuration(file)
    assert set(settings) == {"task_id_policy", "hooks", "commit", "agents"}
    assert read_settings(Configuration(file, settings)).watched == (".env", ".env.local")
    assert rules_from(settings, file, {}).agents["mallory"].capacity == 2


def test_schemas_are_in_the_package() -> None:
    """SCM-9: an installed coord has the schemas of its records."""
    names = sorted(path.name for path in (PACKAGE / "schemas").iterdir())
    assert names == ["lock.json", "message.json", "session.json"]
