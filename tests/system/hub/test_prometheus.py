"""A real Prometheus reads a real hub: the metrics, the shipped rules and the shipped dashboard agree."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coord.followers.metrics.families import FAMILIES, PREFIX
from tests.support.git_folders import made_repository
from tests.support.hub.process import PATIENCE_S, RunningHub, private_home, serving
from tests.support.servers.prometheus import EXAMPLES, RULES, PrometheusServer, promtool
from tests.support.servers.server import lacking, poll_until, running

missing = lacking(PrometheusServer)
pytestmark = pytest.mark.skipif(bool(missing), reason=missing)
NAMES = re.compile(rf"\b(?:{PREFIX}|coord)_[a-z_]+")
SUFFIXES = ("", "_bucket", "_sum", "_count")
RULE_TESTS = """
rule_files: [prometheus-rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'coord_overwrites_undone_total{instance="h"}', values: '0 0 1 1 1'}
      - {series: 'up{job="coord",instance="h"}', values: '1 1 1 0 0 0 0'}
      - {series: 'coditect_results_total{tenant="t",project="p",result="stale_generation"}', values: 0 2 4 8}
    alert_rule_test:
      - {eval_time: 1m, alertname: CoordOverwriteUndone, exp_alerts: []}
      - eval_time: 4m
        alertname: CoordOverwriteUndone
        exp_alerts:
          - exp_labels: {instance: h, severity: warning}
            exp_annotations:
              summary: A command overwrote files that another agent holds; they were restored
              next: coord log tail --op file.restored
      - {eval_time: 4m, alertname: CoordDown, exp_alerts: []}
      - eval_time: 6m
        alertname: CoordDown
        exp_alerts:
          - exp_labels: {instance: h, job: coord, severity: critical}
            exp_annotations:
              summary: The hub at h does not answer
              next: "coord serve --status; agents go on with the store itself"
      - eval_time: 4m
        alertname: CoordZombies
        exp_alerts:
          - exp_labels: {tenant: t, project: p, severity: warning}
            exp_annotations:
              summary: Agents of p submit work that has passed to others
              next: "coord report --since 1h; their leases may be too short"
"""


class Shop:
    """A repository with a hub and a token that may read."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self.folder = folder
        self.environ = environ

    def coord(self, *words: str, session: tuple[str, ...] = ()) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "coord", *session, *words],
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def work(self, task: str) -> None:
        """Do one task."""
        for verb in ("add", "claim", "submit"):
            self.coord("task", verb, task, "--project", "shop", session=("--session", "ada"))

    def metrics(self) -> str:
        return self.coord("metrics")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("prometheus")
    made_repository(folder / "shop")
    with private_home(folder / "private") as home:
        yield Shop(folder / "shop", home)


def texts_of(value: Any, key: str) -> Iterator[str]:
    """Yield every text with a key in nested data."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name == key and isinstance(each, str):
                yield each
            yield from texts_of(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from texts_of(each, key)


def test_prometheus_reads_a_hub_that_dies_and_returns(shop: Shop) -> None:
    """OBS-22, OBS-24: it scrapes with a token file, answers a query, loads the rules, and sees no fall."""
    shop.work("T-1")
    token = json.loads(shop.coord("token", "create", "--role", "view", "--json"))["token"]
    with ExitStack() as stack:
        hub: RunningHub = stack.enter_context(serving(shop.folder, shop.environ))
        address = hub.url.removeprefix("http://")
        server = stack.enter_context(running(PrometheusServer))
        server.scrape(address, token)
        claims = f'sum({PREFIX}_claims_total{{tenant="local",project="shop",result="granted"}})'
        poll_until(lambda: server.value(claims) == 1, PATIENCE_S, "the claim is not counted")
        shop.work("T-2")
        poll_until(lambda: server.value(claims) == 2, PATIENCE_S, "the second claim is not counted")
        hub.process.send_signal(signal.SIGKILL)
        hub.process.wait(PATIENCE_S)
        stack.enter_context(serving(shop.folder, shop.environ, listen=address))
        shop.work("T-3")
        poll_until(lambda: server.value(claims) == 3, PATIENCE_S, "the new hub is not scraped")
        resets = f'resets({PREFIX}_claims_total{{result="granted"}}[10m])'
        assert server.value(resets) == 0, "a counter that falls looks like one that began again"
        groups = server.ask("rules")["groups"]
        assert len(groups[0]["rules"]) == 10
        assert {rule["health"] for rule in groups[0]["rules"]} <= {"ok", "unknown"}
        done = f"{PREFIX}_completed_tasks"  # a scrape may come between a claim and its result
        poll_until(lambda: server.value(done) == 3, PATIENCE_S, "the third task is not counted as done")


def test_promtool_finds_no_fault(shop: Shop, tmp_path: Path) -> None:
    """ALR-12, OBS-24: rules and metrics pass the checker of Prometheus, and alerts fire in time."""
    shop.work("T-9")
    for words, given in (
        (("check", "rules", str(EXAMPLES / RULES)), ""),
        (("check", "metrics"), shop.metrics()),
    ):
        done = promtool(*words, stdin=given)
        assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / RULES).write_text((EXAMPLES / RULES).read_text())
    (tmp_path / "tests.yml").write_text(RULE_TESTS)
    done = promtool("test", "rules", "tests.yml", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_metric_that_is_named_exists(shop: Shop) -> None:
    """OBS-24: dashboard and rules name only what the hub has, and the dashboard shows every family."""
    shown = {line.split()[2] for line in shop.metrics().splitlines() if line.startswith("# TYPE ")}
    dashboard = json.loads((EXAMPLES / "grafana-dashboard.json").read_text())
    rules = msgspec.yaml.decode((EXAMPLES / RULES).read_text())
    expressions = [*texts_of(dashboard, "expr"), *texts_of(dashboard, "query"), *texts_of(rules, "expr")]
    named = {name for each in expressions for name in NAMES.findall(each)}
    known = {f"{name}{suffix}" for name in shown for suffix in SUFFIXES}
    assert named <= known
    on_board = {name for each in texts_of(dashboard, "expr") for name in NAMES.findall(each)}
    families = {f"{PREFIX}_{name}" if family.seed else name for name, family in FAMILIES.items()}
    unseen = {name for name in families if not {f"{name}{suffix}" for suffix in SUFFIXES} & on_board}
    assert unseen == {
        *("coord_locks_acquired_total", "coord_lock_denials_total"),  # parts of the rates that are shown
        *("coord_agent_seconds_total", "coord_agent_busy_seconds_total"),
    }


def test_panels_do_not_overlap() -> None:
    """The dashboard has one place for each panel."""
    dashboard = json.loads((EXAMPLES / "grafana-dashboard.json").read_text())
    cells: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        mine = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not mine & cells, panel["title"]
        cells |= mine
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
