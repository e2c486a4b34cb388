"""Where the deployment files are, and how their tests read them."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from fairlead_cli.options.stack import ADMIN_VARIABLE, ROLE_VARIABLES
from fairlead_eventlog.grants.services import SERVICE_IDENTITIES
from fairlead_service.config.configuration import Config

ROOT: Final = Path(__file__).parents[3]
DEPLOY: Final = ROOT / "deploy"
KUBERNETES: Final = DEPLOY / "kubernetes"
BASE: Final = KUBERNETES / "base"

SERVICES: Final = tuple(
    name for name in SERVICE_IDENTITIES if name not in {"backup", "provision", "operator"}
)
# The auditor is a command of the `fairlead` command; every other service has an image of its own.
COMMANDS: Final = {"audit": ["audit", "--sessions-max", "2000"]}
PACKAGES: Final = {name: "cli" if name in COMMANDS else name for name in SERVICES}
JOBS: Final = {"provision": ["provision"], "migrate": ["migrate", "--create-roles"]}
HEALTH_PORT: Final = 9100
API_PORT: Final = 8420
RELEASE: Final = "0.1.0"
# Who has which addresses of Postgres: each service its own, and only the job has the others.
LOGINS: Final = {
    "projector": {"FAIRLEAD_POSTGRES_DSN"},
    "gateway": {"FAIRLEAD_POSTGRES_DSN"},
    "migrate": {ADMIN_VARIABLE, *ROLE_VARIABLES},
}
# Variables of the images that we did not build.
FOREIGN: Final = {
    *("GF_AUTH_ANONYMOUS_ENABLED", "GF_AUTH_DISABLE_LOGIN_FORM"),
    *("GOMEMLIMIT", "NATS_NAME", "NATS_ROUTES", "NATS_STORE"),
    *("PGDATA", "POSTGRES_DB", "POSTGRES_PASSWORD_FILE", "POSTGRES_USER"),
}

Manifest = dict[str, Any]


def render(directory: Path) -> list[Manifest]:
    """Every object of a kustomization, as a cluster would get it."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed: it renders kustomizations")
    command = [kubectl, "kustomize", str(directory)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(ran.stdout))


def by_name(manifests: list[Manifest], kind: str) -> dict[str, Manifest]:
    return {each["metadata"]["name"]: each for each in manifests if each["kind"] == kind}


def pods(manifests: list[Manifest]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name of each workload, without the release of a job, and its pod."""
    for manifest in manifests:
        if manifest["kind"] in {"Deployment", "StatefulSet", "Job"}:
            name = manifest["metadata"]["name"].removesuffix(f"-{RELEASE}")
            yield name, manifest["spec"]["template"]["spec"]


def is_known(variable: str) -> bool:
    """Whether the configuration reads a variable, as `fairlead_service.config.configuration` maps them."""
    section, _, key = variable.removeprefix("FAIRLEAD_").lower().partition("_")
    field = Config.model_fields.get(section)
    fields = getattr(field.annotation, "model_fields", {}) if field else {}
    known = {"FAIRLEAD_CONFIG", ADMIN_VARIABLE, *ROLE_VARIABLES}
    return variable in known or key in fields
