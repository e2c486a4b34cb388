"""The order of an upgrade: the document, the labels of the manifests and the rehearsal say the same."""

import re
from pathlib import Path

import pytest
import yaml

from fairlead_testing.compose_file import load_compose
from fairlead_testing.deploy_files import (
    DEPLOY,
    JOBS,
    KUBERNETES,
    RELEASE,
    ROOT,
    SERVICES,
    Manifest,
    render,
)
from tests.rehearsal.deployment import NEW, ORDER

DOCUMENT = (ROOT / "docs/operations/upgrade.md").read_text()
LABEL = "fairlead.dev/wave"


@pytest.fixture(scope="module", params=["overlays/production", "base"])
def manifests(request: pytest.FixtureRequest) -> list[Manifest]:
    return render(KUBERNETES / request.param)


def documented_waves() -> dict[str, int]:
    """The wave of each job and service, from the table."""
    found = {}
    for wave, what in re.findall(r"^\| (\d) \| (.*?) \|", DOCUMENT, re.MULTILINE):
        for name in (*JOBS, *SERVICES):
            if re.search(rf"(^|, |fairlead ){name}\b(?! --(finalise|nats-auth))", what):
                found[name] = int(wave)
    return found


def labelled_waves(manifests: list[Manifest]) -> dict[str, int]:
    return {
        each["metadata"]["name"].removesuffix(f"-{RELEASE}"): int(each["metadata"]["labels"][LABEL])
        for each in manifests
        if LABEL in each["metadata"].get("labels", {})
    }


def test_every_job_and_service_has_the_wave_of_the_document(manifests: list[Manifest]) -> None:
    waves = labelled_waves(manifests)

    assert waves == documented_waves()
    assert waves.keys() == {*JOBS, *SERVICES}


def test_the_jobs_of_a_release_come_before_its_services(manifests: list[Manifest]) -> None:
    waves = labelled_waves(manifests)

    assert max(waves[name] for name in JOBS) < min(waves[name] for name in SERVICES)
    services = load_compose(DEPLOY / "compose.yaml", {})
    assert all("provision" in services[name].after for name in SERVICES)


def test_what_has_no_wave_is_what_services_stand_on(manifests: list[Manifest]) -> None:
    """The first command of the document applies it: configuration, policies, the nats-servers."""
    kinds = {each["kind"] for each in manifests if LABEL not in each["metadata"].get("labels", {})}

    assert not kinds & {"Deployment", "Job"}
    assert "StatefulSet" in kinds


def test_a_pod_keeps_its_selector_whatever_its_wave(manifests: list[Manifest]) -> None:
    """A selector never changes, so that a wave may."""
    for each in manifests:
        if each["kind"] == "Deployment":
            assert LABEL not in yaml.safe_dump(each["spec"])


def test_the_rehearsal_upgrades_in_the_order_of_the_document() -> None:
    waves = documented_waves()

    assert [waves[name] for name in (*ORDER, *NEW)] == sorted(
        waves[name] for name in (*ORDER, *NEW)
    )
    [named] = re.findall(r"for wave in ([\d ]+);", DOCUMENT)
    assert [int(wave) for wave in named.split()] == sorted({waves[name] for name in SERVICES})


def test_every_setting_and_command_of_the_document_exists() -> None:
    assert (Path(ROOT) / "tests/tidy/migration_rules.py").is_file()
    assert "rehearsal:" in (ROOT / "Makefile").read_text()
