"""The deployment files: valid by their own schemas, and in agreement with what the services read."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from base64 import b64decode
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from fairlead_cli.commands.stack.migrate import ADMIN_VARIABLE, ROLE_VARIABLES
from fairlead_cli.nats_keys import KeyChanges, write_keys
from fairlead_projector.roles import read_login
from fairlead_service.config.configuration import Config, load
from fairlead_service.identity.keys import parse_keys

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
BASE = DEPLOY / "kubernetes/base"

SERVICES = ("ingest", "runner", "projector", "tools", "gateway")
JOBS = {"provision": ["provision"], "migrate": ["migrate", "--create-roles"]}
PORTS = {"gateway": 8420}
HEALTH_PORT = 9100
# Who has which addresses of Postgres: each service its own, and only the job has the others.
LOGINS = {
    "projector": {"FAIRLEAD_POSTGRES_DSN"},
    "gateway": {"FAIRLEAD_POSTGRES_DSN"},
    "migrate": {ADMIN_VARIABLE, *ROLE_VARIABLES},
}
# Variables of the images we did not build.
FOREIGN = {"GOMEMLIMIT", "PGDATA", "POSTGRES_DB", "POSTGRES_PASSWORD", "POSTGRES_USER"}

SYNC = ("sync", "--locked", "--no-dev", "--no-editable")


def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return read


@pytest.fixture(scope="module")
def manifests() -> list[dict[str, Any]]:
    """Every object of the kustomize base, as a cluster would get it."""
    return render(BASE)


def render(directory: Path) -> list[dict[str, Any]]:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed: it renders kustomizations")
    command = [kubectl, "kustomize", str(directory)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(ran.stdout))


def by_name(manifests: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {
        manifest["metadata"]["name"]: manifest for manifest in manifests if manifest["kind"] == kind
    }


def pods(manifests: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for manifest in manifests:
        if manifest["kind"] in {"Deployment", "StatefulSet", "Job"}:
            yield manifest["metadata"]["name"], manifest["spec"]["template"]["spec"]


def is_known(variable: str) -> bool:
    """Whether the configuration reads a variable, as `fairlead_service.config.configuration` maps them."""
    section, _, key = variable.removeprefix("FAIRLEAD_").lower().partition("_")
    field = Config.model_fields.get(section)
    fields = getattr(field.annotation, "model_fields", {}) if field else {}
    known = {"FAIRLEAD_CONFIG", ADMIN_VARIABLE, *ROLE_VARIABLES}
    return variable in known or key in fields


def test_the_compose_file_fits_the_compose_specification() -> None:
    package = distribution("check-jsonschema")
    path = package.locate_file("check_jsonschema/builtin_schemas/vendor/compose-spec.json")
    schema = json.loads(Path(str(path)).read_text())

    jsonschema.validate(compose(), schema)


def test_the_compose_file_of_nats_keys_gives_each_service_its_own_key_alone() -> None:
    """B8: the variables and secrets of the generated keys, without any key in the repository."""
    package = distribution("check-jsonschema")
    path = package.locate_file("check_jsonschema/builtin_schemas/vendor/compose-spec.json")
    keyed: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.nats-auth.yaml").read_text())
    jsonschema.validate(keyed, json.loads(Path(str(path)).read_text()))

    for name in (*SERVICES, "provision"):
        service = keyed["services"][name]
        assert service["environment"] == {"FAIRLEAD_NATS_NKEY_FILE": "/run/secrets/nats_nkey"}
        assert service["secrets"] == [{"source": f"{name}-nkey", "target": "nats_nkey"}]
        assert keyed["secrets"][f"{name}-nkey"] == {"file": f"./nats/auth/{name}.nk"}


def test_the_component_of_nats_keys_gives_each_pod_its_own_key_alone() -> None:
    """B8: one secret for each service, and the grants for the server."""
    component = DEPLOY / "kubernetes/nats-auth"
    kustomization = yaml.safe_load((component / "kustomization.yaml").read_text())
    secrets = {entry["name"]: entry["files"] for entry in kustomization["secretGenerator"]}

    assert secrets.pop("nats-auth") == ["keys/auth.conf"]
    assert secrets == {
        f"nats-key-{name}": [f"nkey=keys/{name}.nk"] for name in (*SERVICES, "provision")
    }
    for name in (*SERVICES, "provision"):
        patch = yaml.safe_load((component / f"{name}.yaml").read_text())
        (volume,) = patch["spec"]["template"]["spec"]["volumes"]
        assert patch["metadata"]["name"] == name
        assert volume["secret"]["secretName"] == f"nats-key-{name}"
    shared = (DEPLOY / "nats/with-auth.conf").read_text()
    assert (component / "with-auth.conf").read_text() == shared


@pytest.fixture(scope="module")
def keyed_manifests(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Every object of an overlay with the component of NATS keys, with keys as a user makes them."""
    place = tmp_path_factory.mktemp("overlay")
    shutil.copytree(DEPLOY / "kubernetes", place / "kubernetes")
    write_keys(place / "kubernetes/nats-auth/keys", KeyChanges())
    overlay = place / "overlay"
    overlay.mkdir()
    kustomization = {
        "resources": ["../kubernetes/base"],
        "components": ["../kubernetes/nats-auth"],
    }
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return render(overlay)


def test_an_overlay_with_nats_keys_fits_the_schemas_and_every_secret_exists(
    keyed_manifests: list[dict[str, Any]],
) -> None:
    """B8: a pod finds its key only if the secret has the same namespace and the same name."""
    version = kubernetes_validate.latest_version()
    places = {
        (manifest["kind"], manifest["metadata"]["namespace"], manifest["metadata"]["name"])
        for manifest in keyed_manifests
        if manifest["kind"] in {"Secret", "ConfigMap"}
    }
    for manifest in keyed_manifests:
        kubernetes_validate.validate(manifest, version, strict=True)

    seeds = set[str]()
    for name, pod in pods(keyed_manifests):
        for volume in pod["volumes"]:
            if "secret" in volume:
                secret = volume["secret"]["secretName"]
                assert ("Secret", "fairlead", secret) in places, f"{name} mounts {secret}"
                seeds |= {secret.rpartition("-")[0]} if volume["name"] == "nats-key" else set()
            if "configMap" in volume:
                assert ("ConfigMap", "fairlead", volume["configMap"]["name"]) in places
    assert seeds == {f"nats-key-{name}" for name in (*SERVICES, "provision")}


def test_the_nats_server_of_the_component_accepts_its_configuration(
    keyed_manifests: list[dict[str, Any]], tmp_path: Path
) -> None:
    """B8: the three files together, in the directories that the pod of NATS has."""
    [pod] = [pod for name, pod in pods(keyed_manifests) if name == "nats"]
    mounts = {m["name"]: m["mountPath"] for m in pod["containers"][0]["volumeMounts"]}
    for manifest in keyed_manifests:
        name, data = manifest["metadata"]["name"], manifest.get("data", {})
        if manifest["kind"] == "ConfigMap" and name.startswith("nats-"):
            files = {file: text.replace('"/data"', f'"{tmp_path}"') for file, text in data.items()}
            write_files(tmp_path / mounts["config"].lstrip("/"), files)
        if manifest["kind"] == "Secret" and name.startswith("nats-auth-"):
            files = {file: b64decode(text).decode() for file, text in data.items()}
            write_files(tmp_path / mounts["auth"].lstrip("/"), files)
    config = tmp_path / pod["containers"][0]["args"][-1].lstrip("/")

    server = Path(sys.executable).with_name("nats-server")
    ran = subprocess.run([server, "-t", "-c", config], capture_output=True, check=False)

    assert ran.returncode == 0, ran.stderr


def write_files(directory: Path, files: dict[str, str]) -> None:
    directory.mkdir(parents=True)
    for name, text in files.items():
        (directory / name).write_text(text)


def test_compose_with_nats_keys_names_services_of_the_file_it_extends() -> None:
    """B8: a misspelt service would be a new one without an image."""
    keyed = yaml.safe_load((DEPLOY / "compose.nats-auth.yaml").read_text())

    assert set(keyed["services"]) == {*SERVICES, "nats", "provision"}
    assert keyed["services"].keys() <= compose()["services"].keys()
    for service in keyed["services"].values():
        assert {entry["source"] for entry in service["secrets"]} <= keyed["secrets"].keys()
    for config in keyed["configs"].values():
        assert (DEPLOY / config["file"]).is_file()


def test_compose_runs_every_service_after_its_streams_exist() -> None:
    services = compose()["services"]

    assert set(services) == {*SERVICES, "nats", "postgres", "provision", "migrate"}
    for name in SERVICES:
        after = services[name]["depends_on"]
        assert after["nats"] == {"condition": "service_healthy"}
        assert after["provision"] == {"condition": "service_completed_successfully"}
        assert services[name]["build"]["args"] == {"SERVICE": name}
        assert services[name]["restart"] == "unless-stopped"
    for name, command in JOBS.items():
        assert services[name]["command"] == command
        assert services[name]["build"]["args"] == {"SERVICE": "cli"}
    for name in LOGINS.keys() & set(SERVICES):
        after = services[name]["depends_on"]
        assert after["migrate"] == {"condition": "service_completed_successfully"}


def test_compose_probes_the_ports_that_are_served() -> None:
    services = compose()["services"]

    for name in SERVICES:
        probe = services[name]["healthcheck"]["test"][-1]
        assert f"http://127.0.0.1:{HEALTH_PORT}/readyz" in probe
    assert services["gateway"]["ports"] == ["127.0.0.1:8420:8420"]


def test_compose_mounts_only_files_and_volumes_that_exist() -> None:
    file = compose()

    for config in file["configs"].values():
        assert (DEPLOY / config["file"]).is_file()
    for service in file["services"].values():
        assert {entry["source"] for entry in service.get("configs", [])} <= set(file["configs"])
        assert {entry.split(":")[0] for entry in service.get("volumes", [])} <= set(file["volumes"])


def test_the_example_configuration_loads_with_the_variables_of_compose() -> None:
    env = compose()["services"]["gateway"]["environment"]

    config = load(DEPLOY / "fairlead.toml", env)

    assert config.nats.url == "nats://nats:4222"
    assert (config.gateway.host, config.gateway.port) == ("0.0.0.0", PORTS["gateway"])  # noqa: S104
    assert (config.health.host, config.health.port) == ("0.0.0.0", HEALTH_PORT)  # noqa: S104
    assert config.postgres.dsn.startswith("postgresql://")


def test_the_gateway_asks_everybody_for_a_key_and_knows_its_own_names(
    manifests: list[dict[str, Any]],
) -> None:
    [pod] = [pod for name, pod in pods(manifests) if name == "gateway"]
    in_cluster = {item["name"]: item.get("value", "") for item in pod["containers"][0]["env"]}
    for env in (compose()["services"]["gateway"]["environment"], in_cluster):
        config = load(DEPLOY / "fairlead.toml", env)

        assert config.auth.mode == "token"
        assert config.auth.keys_file is not None
        assert "gateway" in config.gateway.hosts
    assert parse_keys((DEPLOY / "keys.json").read_text()).keys == ()
    assert (BASE / "keys.json").read_text() == (DEPLOY / "keys.json").read_text()


def test_every_variable_of_compose_is_one_that_something_reads() -> None:
    config = tomllib.loads((DEPLOY / "fairlead.toml").read_text())
    keys = {provider["api_key_env"] for provider in config["provider"].values()}
    services = compose()["services"]
    used = {name for service in services.values() for name in service.get("environment", {})}

    assert {name for name in used - FOREIGN - keys if not is_known(name)} == set()


def test_each_service_knows_its_own_login_of_postgres_and_no_other(
    manifests: list[dict[str, Any]],
) -> None:
    """C8: the gateway connected as the owner."""
    in_compose = {
        name: logins
        for name, service in compose()["services"].items()
        if (logins := {key for key in service["environment"] if "_DSN" in key})
    }
    in_cluster = {
        name: logins
        for name, pod in pods(manifests)
        if (logins := {e["name"] for e in pod["containers"][0]["env"] if "_DSN" in e["name"]})
    }
    services = compose()["services"]
    secrets = {
        name: entry["valueFrom"]["secretKeyRef"]["name"].rpartition("-")[0]
        for name, pod in pods(manifests)
        for entry in pod["containers"][0]["env"]
        if entry["name"] == "FAIRLEAD_POSTGRES_DSN"
    }

    assert in_compose == in_cluster == LOGINS
    # kustomize ends the name of a secret with a hash of its content.
    assert secrets == {name: f"postgres-{name}" for name in ("projector", "gateway")}
    for name in secrets:
        dsn = services[name]["environment"]["FAIRLEAD_POSTGRES_DSN"]
        assert read_login(dsn).name == f"fairlead_{name}"
        assert dsn == services["migrate"]["environment"][f"FAIRLEAD_DSN_{name.upper()}"]


def test_the_nats_server_accepts_its_configuration_and_syncs_always(tmp_path: Path) -> None:
    config = (DEPLOY / "nats/nats.conf").read_text()
    local = tmp_path / "nats.conf"
    local.write_text(config.replace('"/data"', f'"{tmp_path}"'))

    server = Path(sys.executable).with_name("nats-server")
    ran = subprocess.run([server, "-t", "-c", local], capture_output=True, check=False)

    assert ran.returncode == 0, ran.stderr
    assert "sync_interval: always" in config


@pytest.mark.parametrize("name", ["fairlead.toml", "nats/nats.conf"])
def test_the_cluster_gets_the_same_configuration_as_compose(name: str) -> None:
    assert (BASE / Path(name).name).read_text() == (DEPLOY / name).read_text()


def test_every_kubernetes_object_fits_its_schema(manifests: list[dict[str, Any]]) -> None:
    version = kubernetes_validate.latest_version()

    for manifest in manifests:
        kubernetes_validate.validate(manifest, version, strict=True)


def test_every_service_has_a_deployment_and_the_stores_keep_their_data(
    manifests: list[dict[str, Any]],
) -> None:
    assert set(by_name(manifests, "Deployment")) == set(SERVICES)
    assert set(by_name(manifests, "StatefulSet")) == {"nats", "postgres"}
    assert all(
        manifest["spec"]["volumeClaimTemplates"]
        for manifest in by_name(manifests, "StatefulSet").values()
    )
    for name, command in JOBS.items():
        [job] = by_name(manifests, "Job")[name]["spec"]["template"]["spec"]["containers"]
        assert (job["image"], job["args"]) == ("fairlead-cli:0.1.0", command)


def test_kubernetes_probes_the_ports_that_are_served(manifests: list[dict[str, Any]]) -> None:
    for deployment in by_name(manifests, "Deployment").values():
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        env = {entry["name"]: entry.get("value") for entry in container["env"]}
        ports = {entry["name"]: entry["containerPort"] for entry in container["ports"]}
        live, ready = container["livenessProbe"]["httpGet"], container["readinessProbe"]["httpGet"]

        assert (live["path"], ready["path"]) == ("/healthz", "/readyz")
        assert ports[live["port"]] == ports[ready["port"]] == HEALTH_PORT
        assert env["FAIRLEAD_HEALTH_PORT"] == str(HEALTH_PORT)
        assert env.get("FAIRLEAD_GATEWAY_PORT", "8420") == str(PORTS["gateway"])
    [port] = by_name(manifests, "Service")["gateway"]["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (PORTS["gateway"], "api")


def test_no_pod_runs_as_root_or_can_write_its_own_image(manifests: list[dict[str, Any]]) -> None:
    for _name, pod in pods(manifests):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        assert pod["terminationGracePeriodSeconds"] >= 30
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
            assert "memory" in container["resources"]["limits"]


def test_every_variable_of_a_pod_is_one_that_something_reads(
    manifests: list[dict[str, Any]],
) -> None:
    used = {
        variable["name"]
        for _name, pod in pods(manifests)
        for container in pod["containers"]
        for variable in container["env"]
    }

    assert {name for name in used - FOREIGN if not is_known(name)} == set()


def test_the_runner_has_time_to_hand_over(manifests: list[dict[str, Any]]) -> None:
    runner = by_name(manifests, "Deployment")["runner"]["spec"]["template"]["spec"]

    assert runner["terminationGracePeriodSeconds"] > Config().runner.grace_s
    assert compose()["services"]["runner"]["stop_grace_period"] == "60s"


def test_the_dockerfile_does_what_the_install_test_does() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text()

    assert 'uv sync --locked --package "${package}" --no-dev --no-editable' in dockerfile
    assert "USER 10001:10001" in dockerfile


# The installation of each service takes long: `make slow` installs them all.
@pytest.mark.parametrize(
    "service",
    [name if name == "tools" else pytest.param(name, marks=pytest.mark.slow) for name in SERVICES],
)
def test_a_service_installs_alone_and_imports(service: str, tmp_path: Path) -> None:
    install(f"fairlead-{service}", tmp_path / "venv")

    python = tmp_path / "venv/bin/python"
    ran = subprocess.run(
        [python, "-I", "-c", f"import fairlead_{service}.app"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert list((tmp_path / "venv").glob(f"lib/*/site-packages/fairlead_{service}/__main__.py"))


def test_the_command_installs_alone_and_says_what_it_can_do(tmp_path: Path) -> None:
    install("fairlead", tmp_path / "venv")

    command = tmp_path / "venv/bin/fairlead"
    ran = subprocess.run(
        [command, "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stderr
    assert "provision" in ran.stdout


def install(package: str, venv: Path) -> None:
    """What the Dockerfile does: the locked closure of one package into a clean environment."""
    uv = shutil.which("uv") or ROOT / ".tools/bin/uv"
    # uv keeps wheels of local packages while their pyproject is unchanged: build these anew.
    members = (
        tomllib.loads(path.read_text())["project"]["name"]
        for path in ROOT.glob("*/*/pyproject.toml")
    )
    anew = [f"--reinstall-package={name}" for name in members]
    env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    subprocess.run(
        [uv, *SYNC, "--quiet", "--package", package, *anew],
        cwd=ROOT,
        env={**env, "UV_PROJECT_ENVIRONMENT": str(venv)},
        check=True,
    )
