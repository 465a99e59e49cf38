"""The prefix of metrics comes from a confirmed `coord.toml`, and cannot break a name."""

from pathlib import Path

import pytest

from coord.core.errors import Invalid
from coord.followers.metrics.config import read_prefix
from coord.followers.metrics.counts import Counts
from coord.followers.metrics.families import FAMILIES
from coord.followers.metrics.text import Gauge, metrics_text
from coord.sdk.client.client import connect
from coord.transports.cli.handlers.records import MetricsArgs, metrics
from tests.support.consent import write_configuration
from tests.support.git_folders import git


def test_the_prefix_of_a_confirmed_file_counts(tmp_path: Path) -> None:
    """CFL-24: the names of the documents have the prefix that the repository chose; others keep theirs."""
    root, environ = tmp_path / "shop", {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    root.mkdir()
    git(root, "init", "-q")
    write_configuration(root, '[metrics]\nprefix = "shop"\n', environ)
    with connect(cwd=str(root), environ=environ, session="ada") as client:
        text = metrics(client, MetricsArgs(prefix=""))
        assert "# TYPE shop_claims_total counter\n" in text
        assert "coditect_" not in text
        assert "coord_sessions_live " in text
        assert "# TYPE other_claims_total counter\n" in metrics(client, MetricsArgs(prefix="other"))


@pytest.mark.parametrize("prefix", ["", "1a", "a-b", "a b", 'a{b="c"} 1\n', "ä", "x" * 64, 7, ["a"]])
def test_what_would_break_a_name_is_refused(prefix: object) -> None:
    """No prefix can forge a sample."""
    with pytest.raises(Invalid):
        read_prefix({"metrics": {"prefix": prefix}})


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(Invalid, match="not understood"):
        read_prefix({"metrics": {"prefx": "a"}})
    assert read_prefix({}) == "coditect"


@pytest.mark.parametrize("prefix", ["coord", "coditect"])
def test_every_name_is_there_once(prefix: str) -> None:
    """Prometheus refuses an answer that has a metric twice, whatever the prefix is."""
    gauges = [Gauge("pending_tasks", "Tasks.", (), {}, seed=True)]
    heads = [
        line for line in metrics_text(Counts(), gauges, prefix).splitlines() if line.startswith("# TYPE")
    ]
    assert len(heads) == len({line.split()[2] for line in heads}) == len(FAMILIES) + 1
