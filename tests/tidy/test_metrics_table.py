"""Metrics: the table in the documents is the code, names carry units, labels are bounded, alerts name metrics."""

import json
import re
from pathlib import Path

import pytest
import yaml

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
FOREIGN = {"up"}


def metrics_in(expression: str) -> set[str]:
    text = re.sub(r'"[^"]*"|\{[^}]*\}|by \([^)]*\)|\[[^\]]*\]', "", expression)
    return set(re.findall(r"\b(fairlead_\w+|up)\b", text))


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


@pytest.mark.parametrize("path", [ALERTS, ROOT / "deploy/observe/grafana/fairlead.json"])
def test_alerts_and_dashboards_use_metrics_that_exist(path: Path) -> None:
    if path.suffix == ".json":
        panels = json.loads(path.read_text())["panels"]
        expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    else:
        [group] = yaml.safe_load(path.read_text())["groups"]
        expressions = [rule["expr"] for rule in group["rules"]]

    assert expressions
    for expression in expressions:
        assert metrics_in(expression), expression
        assert metrics_in(expression) - known_names() == set(), expression


def test_every_alert_has_an_entry_in_the_runbook_that_names_a_command() -> None:
    [group] = yaml.safe_load(ALERTS.read_text())["groups"]
    document = (ROOT / "docs/operations/alerts.md").read_text()
    entries = dict(re.findall(r"(?ms)^## (\w+)\n(.*?)(?=^## |\Z)", document))

    for rule in group["rules"]:
        name = rule["alert"]
        assert rule["annotations"]["runbook"] == f"docs/operations/alerts.md#{name.lower()}"
        assert "`fairlead " in entries[name] or "`kubectl " in entries[name], name
    assert entries.keys() == {rule["alert"] for rule in group["rules"]}
