"""The compose file: valid by its schema, and in agreement with what the services read."""

import json
import re
import tomllib
from datetime import UTC, datetime
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from fairlead_cli.backup.backup_age import HOURS_MAX
from fairlead_cli.command_line.argument_parser import parse
from fairlead_cli.deployment.secrets_directory import SecretsDirectory
from fairlead_service.config.configuration import load
from fairlead_testing.compose_file import load_compose, start_order
from fairlead_testing.deploy_files import (
    API_PORT,
    BASE,
    COMMANDS,
    DEPLOY,
    FOREIGN,
    HEALTH_PORT,
    JOBS,
    LOGINS,
    PACKAGES,
    SERVICES,
    is_known,
)

NATS = ("nats-1", "nats-2", "nats-3")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return read


def test_the_file_fits_the_compose_specification(document: dict[str, Any]) -> None:
    package = distribution("check-jsonschema")
    path = package.locate_file("check_jsonschema/builtin_schemas/vendor/compose-spec.json")

    jsonschema.validate(document, json.loads(Path(str(path)).read_text()))


def test_every_variable_has_a_default_so_one_command_starts_the_stack() -> None:
    """No variable is needed: secrets are made by the init job, and a key of a provider may be missing."""
    text = (DEPLOY / "compose.yaml").read_text()

    services = load_compose(DEPLOY / "compose.yaml", {})

    assert re.findall(r"\$\{\w+\}", text) == []
    assert services["runner"].environment["ANTHROPIC_API_KEY"] == ""
    assert not [
        line for line in text.splitlines() if re.search(r"password: *\S", line, re.IGNORECASE)
    ]


def test_the_stack_starts_behind_its_secrets_streams_and_tables() -> None:
    services = load_compose(DEPLOY / "compose.yaml", {})

    order = [service.name for service in start_order(services, frozenset())]

    assert order[0] == "init"
    assert set(order) == {"init", *NATS, "postgres", *JOBS, *SERVICES}
    for name in SERVICES:
        assert services[name].after["provision"] == "service_completed_successfully"
        assert services[name].package == PACKAGES[name]
        assert list(services[name].command) == COMMANDS.get(name, [])
        assert services[name].restarts
    for login in LOGINS.keys() & set(SERVICES):
        assert services[login].after["migrate"] == "service_completed_successfully"
    for job, command in JOBS.items():
        assert (services[job].package, list(services[job].command)) == ("cli", command)


def test_each_container_mounts_its_own_secrets_alone(tmp_path: Path) -> None:
    """B8, C8: what `fairlead secrets` makes is what the file mounts."""
    SecretsDirectory(tmp_path).write(("nats-1",), datetime.now(UTC))
    services = load_compose(DEPLOY / "compose.yaml", {})

    for name, service in services.items():
        mounts = [mount for mount in service.mounts if mount.volume == "secrets"]
        if name == "init":
            assert [mount.subpath for mount in mounts] == [""]
            continue
        wanted = "nats" if name in NATS else name
        has_secrets = (tmp_path / wanted).is_dir()
        assert [mount.subpath for mount in mounts] == ([wanted] if has_secrets else [])
        assert all(mount.read_only for mount in mounts)
        for value in service.environment.values():
            for path in re.findall(r"/run/fairlead/([\w.]+)", value):
                assert (tmp_path / wanted / path).is_file(), f"{name} reads {path}"


def test_the_nodes_are_a_cluster_with_three_copies(document: dict[str, Any]) -> None:
    services = document["services"]
    routes = json.loads(services["nats-1"]["environment"]["NATS_ROUTES"])

    assert routes == [f"tls://{name}:6222" for name in NATS]
    assert [services[name]["environment"]["NATS_NAME"] for name in NATS] == list(NATS)
    urls = services["ingest"]["environment"]["FAIRLEAD_NATS_URL"].split(",")
    assert urls == [f"tls://{name}:4222" for name in NATS]
    assert services["provision"]["environment"]["FAIRLEAD_NATS_REPLICAS"] == "3"


def test_the_health_checks_ask_the_ports_that_are_served(document: dict[str, Any]) -> None:
    services = document["services"]

    for name in SERVICES:
        probe = services[name]["healthcheck"]["test"][-1]
        assert f"http://127.0.0.1:{HEALTH_PORT}/readyz" in probe
    assert services["gateway"]["ports"] == [f"127.0.0.1:${{FAIRLEAD_PORTS:-8420}}:{API_PORT}"]


def test_every_port_is_published_on_loopback_alone(document: dict[str, Any]) -> None:
    ports = [port for each in document["services"].values() for port in each.get("ports", ())]

    assert len(ports) >= 3
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_every_file_and_volume_that_is_mounted_exists(document: dict[str, Any]) -> None:
    for config in document["configs"].values():
        assert (DEPLOY / config["file"]).is_file(), config
    for service in load_compose(DEPLOY / "compose.yaml", {}).values():
        volumes = {mount.volume for mount in service.mounts if mount.volume}
        assert volumes <= set(document["volumes"])


def test_no_container_of_ours_can_write_its_image_or_gain_rights(document: dict[str, Any]) -> None:
    for name in (*SERVICES, *JOBS, "init", "operator", "backup", "sim"):
        service = document["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_the_runner_and_the_tools_have_time_to_hand_over(document: dict[str, Any]) -> None:
    for name in ("runner", "tools"):
        assert document["services"][name]["stop_grace_period"] == "60s"


def test_the_configuration_loads_with_the_variables_of_the_gateway() -> None:
    services = load_compose(DEPLOY / "compose.yaml", {})

    config = load(DEPLOY / "fairlead.toml", services["gateway"].environment)

    assert config.auth.mode == "token"
    assert config.auth.keys_file == "/run/fairlead/keys.json"
    assert config.auth.cookie_key_file, "several gateways open the cookies of each other"
    assert "gateway" in config.gateway.hosts
    assert (config.gateway.host, config.gateway.port) == ("0.0.0.0", API_PORT)  # noqa: S104
    assert (config.health.host, config.health.port) == ("0.0.0.0", HEALTH_PORT)  # noqa: S104
    assert config.nats.replicas == 3


def test_every_variable_is_one_that_something_reads(document: dict[str, Any]) -> None:
    used = {name for each in document["services"].values() for name in each.get("environment", {})}
    keys = {"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}

    assert {name for name in used - FOREIGN - keys if not is_known(name)} == set()


def test_the_provider_of_the_profile_is_one_of_the_configuration(document: dict[str, Any]) -> None:
    config = tomllib.loads((DEPLOY / "fairlead.toml").read_text())
    command = document["services"]["sim"]["command"]

    assert config["provider"]["sim"]["base_url"] == f"http://sim:{command[-1]}"
    assert document["services"]["sim"]["profiles"] == ["sim"]


def test_the_profile_for_backups_comes_before_the_alert_that_misses_one() -> None:
    backup = load_compose(DEPLOY / "compose.yaml", {})["backup"]
    often = load_compose(DEPLOY / "compose.yaml", {"FAIRLEAD_BACKUP_HOURS": "6"})["backup"]
    volumes = {mount.target: mount for mount in backup.mounts if mount.volume}

    args = parse(list(backup.command))

    assert backup.profiles == ("backup",)
    assert backup.restarts
    assert (args.command, args.dated, args.keep) == ("backup", True, 14)
    assert args.every < HOURS_MAX
    assert parse(list(often.command)).every == 6
    assert not volumes[str(args.directory)].read_only
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    assert re.search(rf"install -d .*-o fairlead .*{args.directory}\b", dockerfile), "a new volume"


@pytest.mark.parametrize("name", ["fairlead.toml", "nats/nats.conf"])
def test_the_cluster_gets_the_same_configuration_as_compose(name: str) -> None:
    assert (BASE / Path(name).name).read_text() == (DEPLOY / name).read_text()
    assert "sync_interval: always" in (DEPLOY / "nats/nats.conf").read_text()
