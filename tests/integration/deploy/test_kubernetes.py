"""The Kubernetes files: valid by the API's schemas, and by rules of our own, one for each lesson learnt."""

import re
import shutil
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from fairlead_cli.command_line.argument_parser import parse
from fairlead_cli.deployment.secrets_directory import DEFAULT_HOSTS, SecretsDirectory
from fairlead_service.config.configuration import Config
from fairlead_testing.deploy_files import (
    API_PORT,
    COMMANDS,
    DEPLOY,
    FOREIGN,
    HEALTH_PORT,
    JOBS,
    KUBERNETES,
    LOGINS,
    PACKAGES,
    RELEASE,
    ROOT,
    SERVICES,
    Manifest,
    by_name,
    is_known,
    pods,
    render,
)

# Kinds that operators bring: their schemas are not part of Kubernetes.
CUSTOM_KINDS = {"PodMonitor", "PrometheusRule", "ScaledObject"}
STORES = {"nats", "postgres"}
PROBE_TIMEOUT_S_MIN = 3
CATCH_UP_S_MIN = 600


@pytest.fixture(scope="module")
def deploy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the files with the secrets that an operator makes for the small overlay."""
    copy = tmp_path_factory.mktemp("kubernetes") / "kubernetes"
    shutil.copytree(KUBERNETES, copy)
    SecretsDirectory(copy / "overlays/small/secrets").write(DEFAULT_HOSTS, datetime.now(UTC))
    return copy


@pytest.fixture(scope="module", params=["overlays/small", "overlays/production", "base"])
def manifests(deploy: Path, request: pytest.FixtureRequest) -> list[Manifest]:
    return render(deploy / request.param)


@pytest.fixture(scope="module")
def small(deploy: Path) -> list[Manifest]:
    return render(deploy / "overlays/small")


@pytest.fixture(scope="module")
def production(deploy: Path) -> list[Manifest]:
    return render(deploy / "overlays/production")


def containers(manifests: list[Manifest]) -> list[tuple[str, dict[str, Any]]]:
    return [(name, each) for name, pod in pods(manifests) for each in pod["containers"]]


def env_of(container: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in container.get("env", ())}


def scalers(manifests: list[Manifest]) -> list[tuple[str, int]]:
    """The workload of each scaler, and the most pods that it may have."""
    specs = [each["spec"] for each in by_name(manifests, "HorizontalPodAutoscaler").values()]
    specs += [each["spec"] for each in by_name(manifests, "ScaledObject").values()]
    return [
        (spec["scaleTargetRef"]["name"], spec.get("maxReplicas") or spec["maxReplicaCount"])
        for spec in specs
    ]


# Each rule lists the places that break it.


def service_links_are_off(manifests: list[Manifest]) -> list[str]:
    """C1: Kubernetes sets FAIRLEAD_GATEWAY_PORT=tcp://… in the pods of a namespace with that service."""
    return [name for name, pod in pods(manifests) if pod.get("enableServiceLinks") is not False]


def the_log_has_three_nodes_and_copies(manifests: list[Manifest]) -> list[str]:
    """C2: one NATS node with one copy of each stream."""
    nats = by_name(manifests, "StatefulSet")["nats"]
    wrong = [] if nats["spec"]["replicas"] == 3 else ["nats"]
    copies = {
        name: env_of(each)["FAIRLEAD_NATS_REPLICAS"]
        for name, each in containers(manifests)
        if name not in STORES
    }
    return wrong + [name for name, number in copies.items() if number != "3"]


def liveness_does_not_ask_for_dependencies(manifests: list[Manifest]) -> list[str]:
    """C3: a Postgres outage restarted pods, or took them out of a service that can serve."""
    return [
        name
        for name, each in containers(manifests)
        if name in SERVICES and each["livenessProbe"]["httpGet"]["path"] != "/healthz"
    ]


def jobs_can_be_applied_again(manifests: list[Manifest]) -> list[str]:
    """C4: a job is immutable: its name has the release, and it mounts nothing whose name has a hash."""
    wrong = []
    for name, job in by_name(manifests, "Job").items():
        text = yaml.safe_dump(job["spec"]["template"]["spec"]["volumes"])
        if not name.endswith(f"-{RELEASE}") or re.search(r"-[0-9a-z]{10}\b", text):
            wrong.append(name)
    return wrong


def the_disk_is_larger_than_the_limit_of_the_log(manifests: list[Manifest]) -> list[str]:
    """C7: a limit of 20 GB on a volume of 20 GB."""
    nats = by_name(manifests, "StatefulSet")["nats"]["spec"]
    [container] = nats["template"]["spec"]["containers"]
    [claim] = nats["volumeClaimTemplates"]
    limit = int(env_of(container)["NATS_STORE"].removesuffix("GB"))
    size = int(claim["spec"]["resources"]["requests"]["storage"].removesuffix("Gi"))
    return [] if size >= 1.25 * limit else [f"{limit} GB on {size} Gi"]


def every_scratch_directory_is_bounded(manifests: list[Manifest]) -> list[str]:
    """C7: /tmp without a limit fills the disk of the node."""
    return [
        name
        for name, pod in pods(manifests)
        for volume in pod["volumes"]
        if "emptyDir" in volume and "sizeLimit" not in volume["emptyDir"]
    ]


def every_workload_has_a_disruption_budget(manifests: list[Manifest]) -> list[str]:
    """C8: a drain of nodes may not take all pods of a service at once."""
    budgets = by_name(manifests, "PodDisruptionBudget").keys()
    return [
        name
        for name, _ in pods(manifests)
        if name not in JOBS and name not in budgets | {"postgres"}
    ]


def pods_spread_over_nodes(manifests: list[Manifest]) -> list[str]:
    """C8: all pods of a service on one node die with it."""
    return [
        name
        for name, pod in pods(manifests)
        if name not in JOBS and name != "postgres" and not pod.get("topologySpreadConstraints")
    ]


def long_running_pods_are_probed_at_start_and_stop_gently(manifests: list[Manifest]) -> list[str]:
    """C8: no startup probe, no preStop."""
    return [
        name
        for name, each in containers(manifests)
        if name not in JOBS
        and not {"startupProbe", "livenessProbe", "readinessProbe", "lifecycle"} <= each.keys()
    ]


def a_busy_machine_does_not_fail_a_probe(manifests: list[Manifest]) -> list[str]:
    """The default is one second: a loop that is late for so long would be restarted under load."""
    return [
        f"{name} {probe}"
        for name, each in containers(manifests)
        for probe in ("startupProbe", "livenessProbe", "readinessProbe")
        if probe in each and each[probe].get("timeoutSeconds", 1) < PROBE_TIMEOUT_S_MIN
    ]


def a_node_of_the_log_has_started_when_its_copies_are_complete(
    manifests: list[Manifest],
) -> list[str]:
    """A rollout would stop the next node while this one still catches up: two of three copies away."""
    [container] = by_name(manifests, "StatefulSet")["nats"]["spec"]["template"]["spec"][
        "containers"
    ]
    probe = container["startupProbe"]
    patience_s = probe["periodSeconds"] * probe["failureThreshold"]
    is_whole = probe["httpGet"]["path"] == "/healthz"
    return [] if is_whole and patience_s >= CATCH_UP_S_MIN else ["nats"]


def volumes_keep_their_owners_at_every_start(manifests: list[Manifest]) -> list[str]:
    """Kubernetes would change the group and mode of every file of a volume before each start."""
    return [
        name
        for name, pod in pods(manifests)
        if pod["securityContext"].get("fsGroupChangePolicy") != "OnRootMismatch"
    ]


def what_is_scaled_has_no_fixed_number(manifests: list[Manifest]) -> list[str]:
    """Each `kubectl apply` would set the number back, in the middle of the load."""
    targets = dict(scalers(manifests))
    return [
        name
        for name, each in by_name(manifests, "Deployment").items()
        if ("replicas" in each["spec"]) == (name in targets)
    ]


def each_scaler_has_a_workload_of_its_own(manifests: list[Manifest]) -> list[str]:
    """Two scalers of one workload fight over its number, and one without a workload scales nothing."""
    targets = [name for name, _ in scalers(manifests)]
    workloads = by_name(manifests, "Deployment").keys()
    return [name for name in targets if targets.count(name) > 1 or name not in workloads]


def several_pods_write_only_a_volume_that_permits_it(manifests: list[Manifest]) -> list[str]:
    """Pods beyond the first could not start, nor could a new one beside the old one in a rollout."""
    numbers = dict(scalers(manifests))
    claims = by_name(manifests, "PersistentVolumeClaim")
    wrong = []
    for name, each in by_name(manifests, "Deployment").items():
        spec = each["spec"]
        most = numbers.get(name, spec.get("replicas", 1))
        for volume in spec["template"]["spec"]["volumes"]:
            claim = volume.get("persistentVolumeClaim", {}).get("claimName")
            if claim is None:
                continue
            is_shared = claims[claim]["spec"]["accessModes"] == ["ReadWriteMany"]
            is_replaced = spec.get("strategy", {}).get("type") == "Recreate"
            if not is_shared and (most > 1 or not is_replaced):
                wrong.append(name)
    return wrong


def metrics_have_the_labels_that_alerts_ask_for(manifests: list[Manifest]) -> list[str]:
    """The operator calls the job `namespace/name`: an alert on `up{job="fairlead"}` would never fire."""
    wrong = []
    for name, monitor in by_name(manifests, "PodMonitor").items():
        for endpoint in monitor["spec"]["podMetricsEndpoints"]:
            labels = {each["targetLabel"]: each for each in endpoint.get("relabelings", ())}
            source = labels.get("service", {}).get("sourceLabels")
            is_fairlead = labels.get("job", {}).get("replacement") == "fairlead"
            if not is_fairlead or source != ["__meta_kubernetes_pod_label_app_kubernetes_io_name"]:
                wrong.append(name)
    return wrong


def gateways_open_the_cookies_of_each_other(manifests: list[Manifest]) -> list[str]:
    """A sign-in at one gateway was unreadable at the next: each had a key of its own."""
    [gateway] = [each for name, each in containers(manifests) if name == "gateway"]
    return [] if "FAIRLEAD_AUTH_COOKIE_KEY_FILE" in env_of(gateway) else ["gateway"]


def traffic_is_denied_unless_a_policy_allows_it(manifests: list[Manifest]) -> list[str]:
    """C8: no NetworkPolicy."""
    policies = by_name(manifests, "NetworkPolicy")
    denies = policies.get("default-deny", {}).get("spec", {})
    expected = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    return [] if denies == expected else ["default-deny"]


def nats_is_reached_over_tls_with_a_key(manifests: list[Manifest]) -> list[str]:
    """C8, B8: no TLS; credentials in addresses."""
    wrong = []
    for name, each in containers(manifests):
        env = env_of(each)
        if name in STORES:
            continue
        urls = env["FAIRLEAD_NATS_URL"].split(",")
        is_safe = all(url.startswith("tls://") and "@" not in url for url in urls)
        if not (is_safe and env["FAIRLEAD_NATS_NKEY_FILE"] and env["FAIRLEAD_NATS_TLS_CA"]):
            wrong.append(name)
    return wrong


def each_service_logs_in_as_its_own_role(manifests: list[Manifest]) -> list[str]:
    """C8: the gateway connected as the owner of the tables."""
    wrong = []
    for name, each in containers(manifests):
        logins = {e["name"]: e for e in each.get("env", ()) if "_DSN" in e["name"]}
        if logins.keys() != LOGINS.get(name, set()):
            wrong.append(name)
        for login in logins.values():
            reference = login["valueFrom"]["secretKeyRef"]
            if reference["name"] != f"fairlead-{name}":
                wrong.append(f"{name} reads {reference['name']}")
    return wrong


def no_secret_stands_in_a_manifest_but_by_reference(manifests: list[Manifest]) -> list[str]:
    """Secrets come from Secrets: no password, key or token is the value of a variable."""
    return [
        f"{name} {variable}"
        for name, each in containers(manifests)
        for variable, value in env_of(each).items()
        if value and re.search(r"PASSWORD(?!_FILE)|SECRET|TOKEN|_KEY$", variable)
    ]


def no_pod_has_more_rights_than_it_needs(manifests: list[Manifest]) -> list[str]:
    """The restricted profile of Kubernetes, a read-only root, and no token of the API."""
    wrong = []
    for name, pod in pods(manifests):
        context = pod["securityContext"]
        is_restricted = context["runAsNonRoot"] and context["seccompProfile"]
        wrong += [] if is_restricted and pod["automountServiceAccountToken"] is False else [name]
        for each in pod["containers"]:
            own = each["securityContext"]
            is_closed = own["readOnlyRootFilesystem"] and not own["allowPrivilegeEscalation"]
            wrong += [] if is_closed and own["capabilities"] == {"drop": ["ALL"]} else [name]
    return wrong


def every_container_says_what_it_needs(manifests: list[Manifest]) -> list[str]:
    """The scheduler needs requests, and a leak may not take the node."""
    return [
        name
        for name, each in containers(manifests)
        if each["resources"]["requests"].keys() != {"cpu", "memory"}
        or "memory" not in each["resources"]["limits"]
    ]


def every_variable_is_read_by_something(manifests: list[Manifest]) -> list[str]:
    """A misspelt variable would be ignored."""
    used = {variable for _, each in containers(manifests) for variable in env_of(each)}
    return [name for name in used - FOREIGN if not is_known(name)]


RULES: tuple[Callable[[list[Manifest]], list[str]], ...] = (
    service_links_are_off,
    the_log_has_three_nodes_and_copies,
    liveness_does_not_ask_for_dependencies,
    jobs_can_be_applied_again,
    the_disk_is_larger_than_the_limit_of_the_log,
    every_scratch_directory_is_bounded,
    every_workload_has_a_disruption_budget,
    pods_spread_over_nodes,
    long_running_pods_are_probed_at_start_and_stop_gently,
    a_busy_machine_does_not_fail_a_probe,
    a_node_of_the_log_has_started_when_its_copies_are_complete,
    volumes_keep_their_owners_at_every_start,
    what_is_scaled_has_no_fixed_number,
    each_scaler_has_a_workload_of_its_own,
    several_pods_write_only_a_volume_that_permits_it,
    metrics_have_the_labels_that_alerts_ask_for,
    gateways_open_the_cookies_of_each_other,
    traffic_is_denied_unless_a_policy_allows_it,
    nats_is_reached_over_tls_with_a_key,
    each_service_logs_in_as_its_own_role,
    no_secret_stands_in_a_manifest_but_by_reference,
    no_pod_has_more_rights_than_it_needs,
    every_container_says_what_it_needs,
    every_variable_is_read_by_something,
)


RULES_OF_JOBS = (
    service_links_are_off,
    every_scratch_directory_is_bounded,
    volumes_keep_their_owners_at_every_start,
    nats_is_reached_over_tls_with_a_key,
    no_pod_has_more_rights_than_it_needs,
    every_container_says_what_it_needs,
    every_variable_is_read_by_something,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_manifest_breaks_a_rule(
    manifests: list[Manifest], rule: Callable[[list[Manifest]], list[str]]
) -> None:
    assert rule(manifests) == [], rule.__doc__


def test_every_object_fits_the_schemas_of_kubernetes(manifests: list[Manifest]) -> None:
    version = kubernetes_validate.latest_version()

    for manifest in manifests:
        if manifest["kind"] not in CUSTOM_KINDS:
            kubernetes_validate.validate(manifest, version, strict=True)


def test_every_service_and_job_is_there_with_its_image_and_ports(manifests: list[Manifest]) -> None:
    assert set(by_name(manifests, "Deployment")) == set(SERVICES)
    for name, each in containers(manifests):
        if name in JOBS:
            assert (each["image"], each["args"]) == (f"fairlead-cli:{RELEASE}", JOBS[name])
        if name in SERVICES:
            ports = {entry["name"]: entry["containerPort"] for entry in each["ports"]}
            assert each["image"] == f"fairlead-{PACKAGES[name]}:{RELEASE}"
            assert each.get("args", []) == COMMANDS.get(name, [])
            assert ports["http"] == HEALTH_PORT == int(env_of(each)["FAIRLEAD_HEALTH_PORT"])
            assert each["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    [port] = by_name(manifests, "Service")["gateway"]["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (API_PORT, "api")


def test_a_pod_has_more_time_than_its_service_needs_to_hand_over(
    manifests: list[Manifest],
) -> None:
    config = Config()
    for name, grace_s in (("runner", config.runner.grace_s), ("tools", config.tools.grace_s)):
        pod = by_name(manifests, "Deployment")[name]["spec"]["template"]["spec"]
        [container] = pod["containers"]
        wait_s = int(container["lifecycle"]["preStop"]["exec"]["command"][-1])
        assert pod["terminationGracePeriodSeconds"] > grace_s + wait_s


def test_the_small_overlay_brings_every_secret_that_its_pods_name(small: list[Manifest]) -> None:
    secrets = {name: set(each["data"]) for name, each in by_name(small, "Secret").items()}
    configs = set(by_name(small, "ConfigMap"))
    for name, pod in pods(small):
        for volume in pod["volumes"]:
            if "secret" in volume:
                assert volume["secret"]["secretName"] in secrets, name
            if "configMap" in volume:
                assert volume["configMap"]["name"] in configs, name
        for container in pod["containers"]:
            own = secrets.get(f"fairlead-{name}", set())
            for value in env_of(container).values():
                for path in re.findall(r"^/run/fairlead/(\S+)$", value):
                    assert path in own or name == "migrate", f"{name} reads {path}"
            for variable in container.get("env", ()):
                reference = variable.get("valueFrom", {}).get("secretKeyRef")
                if reference:
                    assert reference["key"] in secrets[reference["name"]]


def test_production_keeps_its_secrets_outside_and_scales_by_waiting_work(
    production: list[Manifest],
) -> None:
    scaled = by_name(production, "ScaledObject")
    queries = {name: each["spec"]["triggers"][0]["metadata"] for name, each in scaled.items()}

    assert by_name(production, "Secret") == {}
    assert set(by_name(production, "HorizontalPodAutoscaler")) == {"gateway", "ingest"}
    assert "fairlead_wake_oldest_age_seconds" in queries["runner"]["query"]
    assert "fairlead_tool_request_oldest_age_seconds" in queries["tools"]["query"]
    assert set(by_name(production, "PodMonitor")) == {"fairlead"}


def test_the_guide_makes_the_namespace_and_every_secret_that_pods_name(
    production: list[Manifest],
) -> None:
    """Somebody who follows the page line by line has all of it before the pods start."""
    page = (ROOT / "docs/operations/install.md").read_text()
    commands = page.partition("**Production**")[2]
    named = {
        volume["secret"]["secretName"].removeprefix("fairlead-")
        for _, pod in pods(production)
        for volume in pod["volumes"]
        if "secret" in volume
    }

    [made] = re.findall(r"for name in ([a-z ]+); do", commands)

    assert set(made.split()) == named | {"backup"}
    assert commands.index("namespace.yaml") < commands.index("create secret")


def test_the_cluster_gets_the_same_alerts_as_compose(production: list[Manifest]) -> None:
    alerts = yaml.safe_load((DEPLOY / "observe/alerts.yaml").read_text())

    assert by_name(production, "PrometheusRule")["fairlead"]["spec"] == alerts


def test_backups_every_night_are_one_line_away(deploy: Path) -> None:
    """A CronJob with a key that only reads, and a volume; it keeps every rule of the other pods."""
    overlay = deploy / "backed-up"
    overlay.mkdir()
    kustomization = {
        "namespace": "fairlead",
        "resources": ["../base"],
        "components": ["../components/backup"],
    }
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))

    manifests = render(overlay)
    cron = by_name(manifests, "CronJob")["backup"]
    job = {
        "kind": "Job",
        "metadata": {"name": "backup"},
        "spec": cron["spec"]["jobTemplate"]["spec"],
    }

    kubernetes_validate.validate(cron, kubernetes_validate.latest_version(), strict=True)
    for rule in RULES_OF_JOBS:
        assert rule([job]) == [], rule.__doc__
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert parse(container["args"]).command == "backup"
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert labels["fairlead.dev/uses"] == "nats", "the network policies let it reach NATS"
    assert job["spec"]["activeDeadlineSeconds"] < 24 * 3600, "a backup that hangs forbids the next"
    claim = by_name(manifests, "PersistentVolumeClaim")["backup"]
    nats = by_name(manifests, "StatefulSet")["nats"]["spec"]["template"]["spec"]["containers"][0]
    store_gb = int(env_of(nats)["NATS_STORE"].removesuffix("GB"))
    kept = int(container["args"][container["args"].index("--keep") + 1])
    size_gb = int(claim["spec"]["resources"]["requests"]["storage"].removesuffix("Gi")) * 1.07
    assert size_gb >= (kept + 1) * store_gb, "the oldest goes after the newest is complete"


def test_a_restore_is_a_job_that_reads_the_volume_of_the_backups(tmp_path: Path) -> None:
    """With the operator's key: the key of backups can only read."""
    SecretsDirectory(tmp_path).write(DEFAULT_HOSTS, datetime.now(UTC))
    [job] = yaml.safe_load_all((KUBERNETES / "restore.yaml").read_text())
    [claim] = [
        each["metadata"]["name"]
        for each in yaml.safe_load_all((KUBERNETES / "components/backup/backup.yaml").read_text())
        if each["kind"] == "PersistentVolumeClaim"
    ]
    [container] = job["spec"]["template"]["spec"]["containers"]
    volumes = {each["name"]: each for each in job["spec"]["template"]["spec"]["volumes"]}

    kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)
    for rule in RULES_OF_JOBS:
        assert rule([job]) == [], rule.__doc__
    assert parse(container["args"]).command == "restore"
    assert container["image"] == f"fairlead-cli:{RELEASE}"
    assert volumes["backups"]["persistentVolumeClaim"]["claimName"] == claim
    owner = volumes["secrets"]["secret"]["secretName"].removeprefix("fairlead-")
    for value in env_of(container).values():
        for path in re.findall(r"^/run/fairlead/(\S+)$", value):
            assert (tmp_path / owner / path).is_file()


def test_a_runtime_class_for_tools_is_one_line_away(deploy: Path) -> None:
    overlay = deploy / "sandboxed"
    overlay.mkdir()
    kustomization = {"resources": ["../base"], "components": ["../components/runtime-class"]}
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))

    deployments = by_name(render(overlay), "Deployment")

    assert deployments["tools"]["spec"]["template"]["spec"]["runtimeClassName"] == "gvisor"
    assert "runtimeClassName" not in deployments["runner"]["spec"]["template"]["spec"]


def test_traces_are_one_line_away(deploy: Path) -> None:
    overlay = deploy / "traced"
    overlay.mkdir()
    kustomization = {"resources": ["../base"], "components": ["../components/traces"]}
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))

    rendered = render(overlay)

    for deployment in by_name(rendered, "Deployment").values():
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        env = {each["name"]: each.get("value", "") for each in container["env"]}
        assert env["FAIRLEAD_TRACES_ENDPOINT"].endswith(":4318")
    assert by_name(rendered, "NetworkPolicy")["traces"]["spec"]["policyTypes"] == ["Egress"]


def test_the_nats_server_accepts_its_configuration_and_the_generated_grants(
    small: list[Manifest], tmp_path: Path
) -> None:
    [pod] = [pod for name, pod in pods(small) if name == "nats"]
    config, secrets = tmp_path / "etc/nats", tmp_path / "run/fairlead"
    config.mkdir(parents=True)
    secrets.mkdir(parents=True)
    for name, text in by_name(small, "Secret")["fairlead-nats"]["data"].items():
        (secrets / name).write_bytes(b64decode(text))
    text = (DEPLOY / "nats/nats.conf").read_text()
    text = re.sub(r'"(/(?:run|data|tmp))', rf'"{tmp_path}\1', text)
    (config / "nats.conf").write_text(text)
    env = {e["name"]: e.get("value", "nats-0") for e in pod["containers"][0]["env"]}

    server = Path(sys.executable).with_name("nats-server")
    command = [str(server), "-t", "-c", str(config / "nats.conf")]
    ran = subprocess.run(command, capture_output=True, check=False, env=env)

    assert ran.returncode == 0, ran.stderr
