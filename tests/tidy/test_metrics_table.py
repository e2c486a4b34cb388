"""Metrics: the table in the documents is the code, names carry units, labels are bounded, alerts name metrics."""

import json
import re
import subprocess
import sys
from pathlib import Path

import promql_parser
import pytest
import yaml

from fairlead_testing.deploy_files import SERVICES
from tests.tidy.metrics_table import FILE, declared, render

ROOT = Path(__file__).parents[2]
SOURCES = ("apps", "libs", "services")
UNITS = ("_seconds", "_bytes", "_commits", "_tokens", "_usd", "_messages")
FORBIDDEN_LABELS = {
    "session",
    "session_id",
    "message",
    "message_id",
    "call_id",
    "principal",
    "tenant",
}
ALERTS = ROOT / "deploy/observe/alerts.yaml"
DASHBOARD = ROOT / "deploy/observe/grafana/fairlead.json"
AUTOSCALING = ROOT / "deploy/kubernetes/components/autoscaling/keda.yaml"
POOL_AUTOSCALING = ROOT / "deploy/kubernetes/components/pool-keda/workers.yaml"
FOREIGN = {"up"}
# What Prometheus adds to every series (deploy/observe/prometheus.yaml), and to the buckets of a histogram.
TARGET_LABELS = {"job", "instance", "service"}


def metrics_in(expression: str) -> set[str]:
    text = re.sub(r'"[^"]*"|\{[^}]*\}|by \([^)]*\)|\[[^\]]*\]', "", expression)
    return set(re.findall(r"\b(fairlead_\w+|up)\b", text))


def expressions_of(path: Path) -> list[str]:
    if path in {AUTOSCALING, POOL_AUTOSCALING}:
        scaled = yaml.safe_load_all(path.read_text())
        return [each["spec"]["triggers"][0]["metadata"]["query"] for each in scaled]
    if path.suffix == ".json":
        panels = json.loads(path.read_text())["panels"]
        return [target["expr"] for panel in panels for target in panel["targets"]]
    [group] = yaml.safe_load(path.read_text())["groups"]
    return [rule["expr"] for rule in group["rules"]]


def labels_in(expression: str) -> set[str]:
    groups = re.findall(r"by \(([^)]*)\)", expression)
    named = {label.strip() for group in groups for label in group.split(",")}
    return named | set(re.findall(r'(\w+) *(?:=|!=|=~|!~) *"', expression))


def labels_of(metrics: set[str]) -> set[str]:
    labels = set(TARGET_LABELS)
    for each in declared():
        if metrics & {each.name, f"{each.name}_bucket"}:
            labels |= {*each.labels, *(["le"] if each.kind == "histogram" else [])}
    return labels


def known_names() -> set[str]:
    names = set(FOREIGN)
    for each in declared():
        names.add(each.name)
        if each.kind == "histogram":
            names |= {f"{each.name}_{part}" for part in ("bucket", "sum", "count")}
    return names


def test_the_table_of_metrics_is_the_code() -> None:
    assert FILE.read_text() == render(), "run `make metrics`"


def test_every_metric_of_the_code_is_in_the_table() -> None:
    declaration = re.compile(r'(?:Counter|Gauge|Histogram)\(\s*"(fairlead_\w+)"')
    files = [path for place in SOURCES for path in ROOT.glob(f"{place}/*/src/**/*.py")]

    found = {name for path in files for name in declaration.findall(path.read_text())}

    assert found == {each.name.removesuffix("_total") for each in declared()}


def test_no_label_is_unbounded() -> None:
    assert {each.name for each in declared() if FORBIDDEN_LABELS & set(each.labels)} == set()


def test_times_and_sizes_carry_their_unit() -> None:
    timed = [each.name for each in declared() if each.kind == "histogram"]

    assert [name for name in timed if not name.endswith((*UNITS, "_error"))] == []


@pytest.mark.parametrize(
    "path", [ALERTS, DASHBOARD, AUTOSCALING, POOL_AUTOSCALING], ids=lambda path: path.parent.name
)
def test_alerts_dashboards_and_scalers_use_metrics_that_exist(path: Path) -> None:
    expressions = expressions_of(path)

    assert expressions
    for expression in expressions:
        promql_parser.parse(expression)  # It raises for what Prometheus refuses.
        assert metrics_in(expression), expression
        assert metrics_in(expression) - known_names() == set(), expression
        assert labels_in(expression) - labels_of(metrics_in(expression)) == set(), expression


def test_an_alert_sees_the_first_one_too() -> None:
    """A series that begins with 1 never increased: a counter that an alert watches begins with 0."""
    source = " ".join(expressions_of(ALERTS))
    watched = set(re.findall(r"increase\((fairlead_\w+)", source))
    script = (
        "from tests.tidy.metrics_table import declared, MODULES\n"
        "from prometheus_client import REGISTRY, generate_latest\n"
        "declared(); print(generate_latest(REGISTRY).decode())"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True)
    begun = set(re.findall(r"(?m)^(fairlead_\w+)(?:\{[^}]*\})? 0\.0$", ran.stdout.decode()))

    assert watched
    assert watched - begun == set()


def test_an_alert_tells_of_each_service_that_nobody_runs() -> None:
    """A container that is gone has no name, and a pod that cannot start is no target: `up` is not 0."""
    source = " ".join(expressions_of(ALERTS))

    missing = re.findall(r'absent\(up\{job="fairlead", service="(\w+)"\}\)', source)

    assert sorted(missing) == sorted(SERVICES)


def test_an_alert_knows_the_room_of_the_stores() -> None:
    """Streams have no limit unless somebody sets one: then the store of the nodes is the limit."""
    source = " ".join(expressions_of(ALERTS))

    [size] = re.findall(r"0\.8 \* (\d+) \* 2 \^ 30", source)

    assert f"NATS_STORE:-{size}GB" in (ROOT / "deploy/compose.yaml").read_text()
    assert f"NATS_STORE, value: {size}GB" in (ROOT / "deploy/kubernetes/base/nats.yaml").read_text()


def test_every_alert_has_an_entry_in_the_runbook_that_names_a_command() -> None:
    [group] = yaml.safe_load(ALERTS.read_text())["groups"]
    document = (ROOT / "docs/operations/alerts.md").read_text()
    entries = dict(re.findall(r"(?ms)^## (\w+)\n(.*?)(?=^## |\Z)", document))

    for rule in group["rules"]:
        name = rule["alert"]
        assert rule["labels"]["severity"] in {"page", "ticket"}, name
        assert rule["annotations"]["runbook"] == f"docs/operations/alerts.md#{name.lower()}"
        assert "`fairlead " in entries[name] or "`kubectl " in entries[name], name
    assert entries.keys() == {rule["alert"] for rule in group["rules"]}
