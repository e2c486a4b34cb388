"""The example files of a second pool: Kubernetes and compose, with the keys that their workers need."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from fairlead_cli.deployment.secrets_directory import DEFAULT_HOSTS, SecretsDirectory
from fairlead_service.config.configuration import load
from fairlead_testing.deploy_files import DEPLOY, KUBERNETES, Manifest, by_name, is_known, render
from tests.integration.deploy.test_kubernetes import CUSTOM_KINDS, RULES, containers, env_of

OVERLAY = KUBERNETES / "overlays" / "pools"


class _Tags(yaml.SafeLoader):
    """A reader that takes the tags of compose for their values."""


def _construct(loader: _Tags, node: yaml.SequenceNode) -> object:
    return loader.construct_sequence(node, deep=True)


_Tags.add_constructor("!override", _construct)


@pytest.fixture(scope="module")
def manifests() -> list[Manifest]:
    return render(OVERLAY)


def test_the_example_breaks_no_rule_of_the_manifests(manifests: list[Manifest]) -> None:
    version = kubernetes_validate.latest_version()

    assert {rule.__name__: found for rule in RULES if (found := rule(manifests))} == {}
    for manifest in manifests:
        if manifest["kind"] not in CUSTOM_KINDS:
            kubernetes_validate.validate(manifest, version, strict=True)


def test_the_workers_follow_the_calls_that_wait_for_their_own_pool(
    manifests: list[Manifest],
) -> None:
    scaled = by_name(manifests, "ScaledObject")["tools-gpu"]["spec"]
    env = env_of(dict(containers(manifests))["tools-gpu"])

    query = scaled["triggers"][0]["metadata"]["query"]

    assert scaled["scaleTargetRef"]["name"] == "tools-gpu"
    assert scaled["minReplicaCount"] >= 1, "a session without calls needs a worker too"
    assert scaled["maxReplicaCount"] > 1
    assert (
        f'fairlead_tool_request_oldest_age_seconds{{pool="{env["FAIRLEAD_TOOLS_POOL"]}"}}' in query
    )


def test_a_cluster_without_keda_scales_a_pool_by_its_processor_time(tmp_path: Path) -> None:
    copy = tmp_path / "kubernetes"
    shutil.copytree(KUBERNETES, copy)
    kustomization = copy / "overlays/pools/kustomization.yaml"
    text = kustomization.read_text()
    changed = text.replace("components/pool-keda", "components/pool-hpa")
    kustomization.write_text(changed.replace("../production", "../../base"))

    manifests = render(kustomization.parent)

    assert changed != text
    assert {rule.__name__: found for rule in RULES if (found := rule(manifests))} == {}
    scaler = by_name(manifests, "HorizontalPodAutoscaler")["tools-gpu"]
    kubernetes_validate.validate(scaler, kubernetes_validate.latest_version(), strict=True)
    assert by_name(manifests, "ScaledObject") == {}


def test_the_workers_serve_a_pool_of_the_rules_with_their_own_key_and_disk(
    manifests: list[Manifest], tmp_path: Path
) -> None:
    pools = load(OVERLAY / "fairlead.toml", {}).pools
    SecretsDirectory(tmp_path, pools=pools).write(DEFAULT_HOSTS, datetime.now(UTC))
    workers = by_name(manifests, "Deployment")["tools-gpu"]["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in workers["volumes"]}
    env = env_of(dict(containers(manifests))["tools-gpu"])
    [rules] = [name for name in by_name(manifests, "ConfigMap") if name.startswith("fairlead-2")]

    assert env["FAIRLEAD_TOOLS_POOL"] in pools.others
    assert volumes["secrets"]["secret"]["secretName"] == "fairlead-tools-gpu"
    assert (tmp_path / "tools-gpu" / "nkey").is_file()
    assert (tmp_path / "tools-gpu" / "ca.crt").is_file()
    assert volumes["workspaces"]["persistentVolumeClaim"]["claimName"] == "workspaces-gpu"
    assert volumes["config"]["configMap"]["name"] == rules
    assert "[[pool]]" in by_name(manifests, "ConfigMap")[rules]["data"]["fairlead.toml"]


def test_the_compose_file_of_a_pool_names_what_exists() -> None:
    compose = yaml.load((DEPLOY / "compose.yaml").read_text(), _Tags)  # noqa: S506 - a safe loader
    pools = yaml.load((DEPLOY / "compose.pools.yaml").read_text(), _Tags)  # noqa: S506
    workers, init = pools["services"]["tools-gpu"], pools["services"]["init"]

    assert workers["extends"] == {"file": "compose.yaml", "service": "tools"}
    assert workers["extends"]["service"] in compose["services"]
    assert all(map(is_known, workers["environment"]))
    [own, secrets] = workers["volumes"]
    assert own.split(":")[0] in pools["volumes"]
    assert secrets["volume"]["subpath"] == "tools-gpu"
    assert init["command"][:2] == compose["services"]["init"]["command"]
    assert init["configs"][0]["source"] in compose["configs"]
