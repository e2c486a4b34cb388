"""The stack of the compose file as processes, under the secrets that its init job made."""

import json
import re
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
import yaml

from fairlead_testing.compose_file import load_compose
from fairlead_testing.compose_processes import Topology, run_topology
from fairlead_testing.deploy_files import BASE, DEPLOY, SERVICES
from tests.tidy.metrics_table import EVERY, declared

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def topology(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topology]:
    services = load_compose(DEPLOY / "compose.yaml", {})
    root = tmp_path_factory.mktemp("topology")
    with run_topology(services, root, frozenset({"sim", "operator", "backup"})) as running:
        yield running


@pytest.fixture
def gateway(topology: Topology) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {topology.secret('operator/key')}", "host": "gateway"}
    url = f"http://{topology.address('gateway')}:8420"
    with httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False) as client:
        yield client


def call(gateway: httpx.Client, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
    """Send a request, again with the same key while the stack asks for patience."""
    headers = {"idempotency-key": uuid4().hex}
    deadline = time.monotonic() + 60
    while True:
        answer = gateway.request(method, path, json=body, headers=headers)
        is_over = answer.status_code != httpx.codes.SERVICE_UNAVAILABLE
        if is_over or time.monotonic() > deadline:
            answer.raise_for_status()
            return answer.json()["data"] if answer.content else None
        time.sleep(1)


def answer_to(gateway: httpx.Client, text: str) -> str:
    """Create a session, send a prompt, wait, and return what the assistant said."""
    body = {
        "location": {"directory": "/srv/workspaces"},
        "model": {"providerID": "sim", "id": "steady"},
    }
    session = call(gateway, "POST", "/api/session", body)["id"]
    call(gateway, "POST", f"/api/session/{session}/prompt", {"prompt": {"text": text}})
    call(gateway, "POST", f"/api/session/{session}/wait")
    messages: list[dict[str, Any]] = []
    for _ in range(60):
        # While a node is elected, the read models may be behind the log.
        messages = call(gateway, "GET", f"/api/session/{session}/message")
        answers = [each for each in messages if each["type"] == "assistant"]
        if answers:
            return "".join(part.get("text", "") for part in answers[0]["content"])
        time.sleep(1)
    raise AssertionError(f"{session} has no answer: {messages}")


def test_a_session_runs_under_the_generated_credentials(gateway: httpx.Client) -> None:
    assert answer_to(gateway, "Say hello") == "You said: Say hello"


def test_nobody_gets_in_without_a_key(topology: Topology) -> None:
    url = f"http://{topology.address('gateway')}:8420/api/session"

    answer = httpx.get(url, headers={"host": "gateway"}, trust_env=False)

    assert answer.status_code == 401


def test_every_stream_has_three_copies(topology: Topology) -> None:
    query = "http://{}:8222/jsz?accounts=true&streams=true&config=true"
    answer = httpx.get(query.format(topology.address("nats-1")), trust_env=False).json()
    streams = [
        stream for account in answer["account_details"] for stream in account["stream_detail"]
    ]

    assert {stream["name"] for stream in streams} >= {"LOG-0", "LOG-7", "WAKES", "TOOLS", "EVENTS"}
    assert {stream["config"]["num_replicas"] for stream in streams} == {3}


def test_nats_talks_tls_only(topology: Topology) -> None:
    with socket.create_connection((topology.address("nats-1"), 4222), timeout=10) as connection:
        greeting = connection.makefile().readline()

    assert json.loads(greeting.removeprefix("INFO "))["tls_required"] is True


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_exposes_the_metrics_that_the_table_says(
    topology: Topology, name: str
) -> None:
    """Alerts and scalers ask for them by service, and one service alone has some of them."""
    url = f"http://{topology.address(name)}:9100/metrics"
    text = httpx.get(url, trust_env=False).raise_for_status().text
    families = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}

    promised = {
        each.name
        for each in declared()
        if each.service == EVERY or name in re.findall(r"\w+", each.service)
    }

    assert promised - families == set()


def test_the_probes_of_the_cluster_pass_on_a_node_of_the_log(topology: Topology) -> None:
    """A probe that a healthy node does not pass would restart it for ever."""
    manifests = yaml.safe_load_all((BASE / "nats.yaml").read_text())
    [nodes] = [each["spec"] for each in manifests if each["kind"] == "StatefulSet"]
    [container] = nodes["template"]["spec"]["containers"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        path = container[probe]["httpGet"]["path"]
        for name in ("nats-1", "nats-2", "nats-3"):
            answer = httpx.get(f"http://{topology.address(name)}:8222{path}", trust_env=False)
            assert answer.status_code == 200, f"{name} {path}: {answer.text}"


def test_an_operator_runs_the_commands_that_alerts_name(topology: Topology) -> None:
    """`docker compose run --rm operator doctor`: with the operator's key, beside the running stack."""
    topology.start("operator")

    said = topology.containers["operator"].log.read_text()
    assert "streams provisioned" in said
    assert "3 copies of each stream, all complete" in said
    assert "role fairlead_migrator, tables up to date" in said


def test_the_profile_for_backups_makes_one_and_the_metrics_tell_of_it(topology: Topology) -> None:
    """The key of backups can do all of it, and the alert for an overdue backup has its metric."""
    url = f"http://{topology.address('projector')}:9100/metrics"
    deadline = time.monotonic() + 90
    began = 0.0
    while not began and time.monotonic() < deadline:
        time.sleep(1)
        text = httpx.get(url, trust_env=False).raise_for_status().text
        began = float(
            re.findall(r"(?m)^fairlead_backup_complete_timestamp_seconds (\S+)$", text)[0]
        )

    said = topology.containers["backup"].log.read_text()
    assert time.time() - began < 600, said
    [manifest] = topology.volume("backups").glob("*/backup.json")
    assert "all that was acknowledged" in " ".join(said.split())
    assert manifest.stat().st_mode & 0o077 == 0
    operator = topology.enter("operator")
    words = ["restore", f"/backups/{manifest.parent.name}", "--check"]
    operator.run([sys.executable, "-m", "fairlead_cli", *words])
    assert operator.process is not None
    assert operator.process.wait(60) == 0, operator.log.read_text()[-1000:]


def test_the_stack_works_on_while_one_node_is_gone(
    topology: Topology, gateway: httpx.Client
) -> None:
    """A leader of some shards dies: the others elect, writers wait, nothing is lost."""
    topology.containers["nats-2"].kill()
    try:
        answers = [answer_to(gateway, f"Number {number}") for number in range(4)]
    finally:
        topology.start("nats-2")

    assert answers == [f"You said: Number {number}" for number in range(4)]
