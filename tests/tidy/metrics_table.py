"""Writes docs/operations/metrics.md: every metric of every service, from the code that declares it.

`make metrics` runs it after a metric was added or changed.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

from prometheus_client.metrics import MetricWrapperBase

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs/operations/metrics.md"
# Which modules declare metrics, and which services expose what they declare.
EVERY: Final = "every service"
TRACED: Final = "every service with traces"
MODULES: Final = {
    "fairlead_eventlog.condition.metrics": EVERY,
    "fairlead_service.loop_lag": EVERY,
    "fairlead_service.traces.metrics": TRACED,
    "fairlead_service.audit": "ingest, tools, projector, hooks, gateway",
    "fairlead_service.quota_metrics": "ingest, runner, tools",
    "fairlead_gateway.http.access_log": "gateway",
    "fairlead_gateway.http.principal_limits": "gateway",
    "fairlead_hooks.metrics": "hooks",
    "fairlead_ingest.metrics": "ingest",
    "fairlead_runner.metrics": "runner",
    "fairlead_projector.metrics": "projector",
    "fairlead_tools.metrics": "tools",
    "fairlead_cli.audit.metrics": "`fairlead audit`",
}
HEAD: Final = """\
# Metrics

Every process serves its metrics at `/metrics` of its operations port, for Prometheus. This table is generated from the code (`make metrics`).
No label holds the id of a session, a message or a call. Requests over NATS are also counted by FastStream
(`fairlead_rpc_received_processed_messages_total` by `handler` and `status`). [Alerts](alerts.md) says which of them wake a person.

| metric | kind | labels | of | says |
|---|---|---|---|---|
"""


class Metric(NamedTuple):
    """One declared metric, with the name under which Prometheus finds it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    service: str
    text: str


def declared() -> list[Metric]:
    """Every metric that the modules declare, by service and name."""
    found = []
    for module, service in MODULES.items():
        for value in vars(import_module(module)).values():
            if isinstance(value, MetricWrapperBase):
                kind = str(value._type)  # noqa: SLF001
                suffix = "_total" if kind == "counter" else ""
                name = f"{value._name}{suffix}"  # noqa: SLF001
                labels = tuple(value._labelnames)  # noqa: SLF001
                found.append(Metric(name, kind, labels, service, value._documentation))  # noqa: SLF001
    order = {EVERY: 0, TRACED: 1}
    return sorted(
        set(found), key=lambda each: (order.get(each.service, 2), each.service, each.name)
    )


def render() -> str:
    """The whole document."""
    rows = [
        f"| `{each.name}` | {each.kind} | {', '.join(f'`{label}`' for label in each.labels)} |"
        f" {each.service} | {each.text} |\n"
        for each in declared()
    ]
    return HEAD + "".join(rows)


def main() -> int:
    if "--write" in sys.argv:
        FILE.write_text(render())
    return 0 if FILE.read_text() == render() else 1


if __name__ == "__main__":
    sys.exit(main())
