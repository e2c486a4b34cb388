"""The NetworkPolicies of the cluster: who reaches whom, decided as a cluster decides it.

Traffic passes if a policy of the sender lets it out, and one of the receiver lets it in.
"""

import shutil
from ipaddress import ip_address, ip_network
from typing import Any, Final

import pytest
import yaml

from fairlead_testing.deploy_files import (
    API_PORT,
    HEALTH_PORT,
    JOBS,
    KUBERNETES,
    LOGINS,
    SERVICES,
    Manifest,
    by_name,
    render,
)

NATS_PORT: Final = 4222
ROUTE_PORT: Final = 6222
POSTGRES_PORT: Final = 5432
HTTPS: Final = 443
INTERNET: Final = "93.184.215.14"
DATA_CENTRE: Final = "10.1.2.3"
ELSEWHERE: Final = {"app.kubernetes.io/name": "somebody-else"}
PODS: Final = {*SERVICES, *JOBS, "backup", "nats", "postgres"}
COMPONENTS: Final = ("backup", "issuer", "postgres")


class Network:
    """The pods and the policies of one rendered kustomization."""

    def __init__(self, manifests: list[Manifest]) -> None:
        self.policies = [each["spec"] for each in by_name(manifests, "NetworkPolicy").values()]
        self.labels: dict[str, dict[str, str]] = {}
        for each in manifests:
            spec = each.get("spec", {})
            template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
            if template:
                labels = template["metadata"]["labels"]
                self.labels[labels["app.kubernetes.io/name"]] = labels

    def connects(self, source: str, target: str, port: int) -> bool:
        """Whether one pod reaches a port of another."""
        sender, receiver = self.labels[source], self.labels[target]
        out = self._passes(sender, "Egress", "to", receiver, port)
        return out and self.lets_in(sender, target, port)

    def lets_in(self, sender: dict[str, str], target: str, port: int) -> bool:
        return self._passes(self.labels[target], "Ingress", "from", sender, port)

    def lets_out(self, source: str, address: str, port: int) -> bool:
        return self._passes(self.labels[source], "Egress", "to", address, port)

    def _passes(
        self, pod: dict[str, str], way: str, peers: str, other: dict[str, str] | str, port: int
    ) -> bool:
        mine = [
            each
            for each in self.policies
            if way in each["policyTypes"] and selects(each["podSelector"], pod)
        ]
        assert mine, "the policy that denies everything selects every pod"
        return any(
            (peers not in rule or any(admits(peer, other) for peer in rule[peers]))
            and ("ports" not in rule or port in {entry["port"] for entry in rule["ports"]})
            for policy in mine
            for rule in policy.get(way.lower(), ())
        )


def selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    wanted = selector.get("matchLabels", {})
    expressions = selector.get("matchExpressions", ())
    assert all(each["operator"] == "In" for each in expressions)
    return wanted.items() <= labels.items() and all(
        labels.get(each["key"]) in each["values"] for each in expressions
    )


def admits(peer: dict[str, Any], other: dict[str, str] | str) -> bool:
    if isinstance(other, str):
        block = peer.get("ipBlock", {"cidr": "255.255.255.255/32"})
        address = ip_address(other)
        excepted = [ip_network(each) for each in block.get("except", ())]
        return address in ip_network(block["cidr"]) and not any(
            address in each for each in excepted
        )
    return "podSelector" in peer and selects(peer["podSelector"], other)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Network:
    """Everything that can be switched on, in one overlay."""
    copy = tmp_path_factory.mktemp("network") / "kubernetes"
    shutil.copytree(KUBERNETES, copy)
    overlay = copy / "all"
    overlay.mkdir()
    components = [f"../components/{name}" for name in COMPONENTS]
    text = yaml.safe_dump({"resources": ["../base"], "components": components})
    (overlay / "kustomization.yaml").write_text(text)
    return Network(render(overlay))


def test_the_pods_are_the_ones_that_the_rules_name(network: Network) -> None:
    assert set(network.labels) == PODS


@pytest.mark.parametrize("name", sorted(PODS - {"nats", "postgres"}))
def test_every_process_of_ours_reaches_the_log(network: Network, name: str) -> None:
    assert network.connects(name, "nats", NATS_PORT)


def test_the_nodes_of_the_log_reach_each_other_and_nobody_joins_them(network: Network) -> None:
    joined = {name for name in PODS if network.connects(name, "nats", ROUTE_PORT)}

    assert joined == {"nats"}
    assert not network.lets_in(ELSEWHERE, "nats", NATS_PORT)


def test_postgres_is_reached_by_who_has_a_login_and_nobody_else(network: Network) -> None:
    reached = {name for name in PODS if network.connects(name, "postgres", POSTGRES_PORT)}
    hosted = {name for name in PODS if network.lets_out(name, DATA_CENTRE, POSTGRES_PORT)}

    assert reached == hosted == set(LOGINS)


@pytest.mark.parametrize("name", SERVICES)
def test_the_node_and_prometheus_reach_the_operations_port(network: Network, name: str) -> None:
    assert network.lets_in(ELSEWHERE, name, HEALTH_PORT)


def test_people_reach_the_gateway_alone(network: Network) -> None:
    assert {name for name in PODS if network.lets_in(ELSEWHERE, name, API_PORT)} == {"gateway"}


def test_who_needs_the_internet_has_it_and_nobody_else(network: Network) -> None:
    """Runners ask providers, tools fetch pages, hooks call receivers, the gateway reads keys of an issuer."""
    outside = {name for name in PODS if network.lets_out(name, INTERNET, HTTPS)}
    inside = {name for name in PODS if network.lets_out(name, DATA_CENTRE, HTTPS)}

    assert outside == {"runner", "tools", "hooks", "gateway"}
    assert inside == {"runner", "gateway"}, "a command of a model reaches no private network"


def test_every_pod_can_ask_for_names(network: Network) -> None:
    assert [name for name in PODS if not network.lets_out(name, DATA_CENTRE, 53)] == []
