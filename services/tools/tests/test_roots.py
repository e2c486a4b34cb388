"""Configured roots on the machine of the tools service: at its start, at begin, and at observe."""

import logging
from pathlib import Path
from typing import Any

import pytest

from fairlead_eventlog.ports import START
from fairlead_schema.context import ObserveContext, ObservedSource, UnavailableSource
from fairlead_schema.events import ToolFailed
from fairlead_schema.location import LocationRef
from fairlead_schema.subjects import Address
from fairlead_service.config.configuration import Config, ConfigError
from fairlead_tools.builtin import edit
from fairlead_tools.builtin.edit import EditInput
from fairlead_tools.builtin.working_directory import find_directories
from fairlead_tools.calls.permission import CallPolicy
from fairlead_tools.calls.worker import ToolWorker
from fairlead_tools.context.observe import Observer
from fairlead_tools.context.sources import instructions, skills
from fairlead_tools.registry.tool import CallFailed
from fairlead_tools.roots import check_roots
from services.tools.tests.calls.test_location_share import call_elsewhere
from services.tools.tests.conftest import Gate, Harness, run_worker, tool, wait_until

ESCAPE = "outside the configured roots"


def config_for(root: Path, **sections: Any) -> Config:  # noqa: ANN401
    values = {
        "context": {"global_file": None, **sections.pop("context", {})},
        "skills": {"config_directory": None},
        "location": {"roots": [str(root)]},
        **sections,
    }
    return Config.model_validate(values)


async def observe(config: Config, directory: Path, tenant: str = "default") -> dict[str, Any]:
    observer = Observer(config)
    request = ObserveContext(location=LocationRef(directory=str(directory)), tenant=tenant)
    sample = await observer.observe(request)
    await observer.close()
    return {observation.key: observation for observation in sample.observations}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a project, inside a repository with instructions and skills of its own."""
    root = tmp_path / "repo" / "root"
    for place, text in ((tmp_path / "repo", "above"), (root / "project", "inside")):
        (place / ".fairlead" / "skills").mkdir(parents=True)
        (place / "AGENTS.md").write_text(f"Rules {text}.")
        skill = f"---\nname: {text}\ndescription: d\n---\nbody"
        (place / ".fairlead" / "skills" / f"{text}.md").write_text(skill)
    (tmp_path / "repo" / ".git").mkdir()
    return root


async def test_a_link_that_leads_outside_now_stops_a_call_before_it_runs(
    harness: Harness, tmp_path: Path
) -> None:
    """B2: create saw a directory inside the root; the link was changed since."""
    root, link = tmp_path / "root", tmp_path / "root" / "link"
    root.mkdir()
    link.symlink_to("/etc")
    gate = Gate()
    called = tool("gate", execute=gate)
    harness.registry.register(called)
    await call_elsewhere(harness, called, "ses_2", str(link))
    policy = CallPolicy(Config().rules, config_for(root).roots)
    harness.liveness.alive.add("wkr_a")

    async with run_worker(
        ToolWorker("wkr_a", harness.eventlog, harness.registry, harness.settings, policy)
    ):
        await wait_until(lambda: not harness.jobs)

    assert gate.runs == []
    page = await harness.log.read(Address("default", "ses_2"), after=START)
    last = page.commits[-1].commit.events[-1].event
    assert isinstance(last, ToolFailed)
    assert ESCAPE in last.error.message


async def test_a_call_keeps_the_directory_that_was_checked(
    harness: Harness, tmp_path: Path
) -> None:
    """B2: a link that is replaced after the check leads a tool nowhere."""
    place, link = tmp_path / "root/place", tmp_path / "root/link"
    place.mkdir(parents=True)
    link.symlink_to(place)
    (place / "file").write_text("inside")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/file").write_text("outside")
    gate = Gate()
    called = tool("gate", execute=gate)
    harness.registry.register(called)
    await call_elsewhere(harness, called, "ses_2", str(link))
    policy = CallPolicy(Config().rules, config_for(tmp_path / "root").roots)
    harness.liveness.alive.add("wkr_a")
    gate.opened.set()
    async with run_worker(
        ToolWorker("wkr_a", harness.eventlog, harness.registry, harness.settings, policy)
    ):
        await wait_until(lambda: not harness.jobs)
    (context,) = gate.runs
    assert context.checked_directory == str(place)
    request = EditInput(path="file", oldString="inside", newString="x")
    assert await edit.tool().required_permissions(request, context)

    link.unlink()
    link.symlink_to(tmp_path / "secret")

    with pytest.raises(CallFailed, match="Unable to edit file"):
        await edit.tool().required_permissions(request, context)
    with pytest.raises(CallFailed, match="leads elsewhere"):
        find_directories(str(link), None, context.checked_directory)


async def test_a_link_that_leads_outside_now_is_not_observed(root: Path, tmp_path: Path) -> None:
    """B2: the context of another directory never reaches the model; the reason reaches people."""
    link = root / "link"
    link.symlink_to(root / "project")
    before = await observe(config_for(root), link)
    link.unlink()
    link.symlink_to(tmp_path / "repo")

    after = await observe(config_for(root), link)

    assert isinstance(before[instructions.KEY], ObservedSource)
    for key in ("core/environment", instructions.KEY, skills.KEY):
        source = after[key]
        assert isinstance(source, UnavailableSource)
        assert source.why == "outside"
        assert ESCAPE in source.reason


async def test_a_tenant_observes_its_own_directories_only(root: Path, tmp_path: Path) -> None:
    """B2: the tenant of the session decides, not the directory."""
    config = config_for(root, tenant={"acme": {"location": {"roots": [str(tmp_path / "acme")]}}})

    seen = await observe(config, root / "project", tenant="acme")

    assert isinstance(seen[instructions.KEY], UnavailableSource)


async def test_instructions_and_skills_above_the_root_are_never_read(root: Path) -> None:
    """B15: a repository around the root does not open what is above the root."""
    seen = await observe(config_for(root), root / "project")

    assert seen[instructions.KEY].baseline.endswith("Rules inside.")
    assert "above" not in seen[instructions.KEY].baseline
    assert [name for name, _ in seen[skills.KEY].value] == ["configure-fairlead", "inside"]
    assert seen["core/environment"].value["root"] == str(root / "project")


async def test_skills_behind_a_link_out_of_the_project_do_not_count(
    root: Path, tmp_path: Path
) -> None:
    """B15: a project cannot bring in the skills of a directory that it may not read."""
    folder = root / "project" / ".fairlead" / "skill"
    folder.symlink_to(tmp_path / "repo" / ".fairlead" / "skills")

    seen = await observe(config_for(root), root / "project")

    assert "above" not in [name for name, _ in seen[skills.KEY].value]


async def test_an_untrusted_project_says_nothing_to_the_model(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B15: with explicit trust its instructions and skills do not count, and a log line says so."""
    caplog.set_level(logging.INFO)
    configured = {"trust": "explicit", "instructions": ["AGENTS.md"]}

    seen = await observe(config_for(root, context=configured), root / "project")

    assert instructions.KEY not in seen
    assert [name for name, _ in seen[skills.KEY].value] == ["configure-fairlead"]
    lines = [record for record in caplog.records if "not in context.trusted" in record.message]
    assert len(lines) == 1
    assert "not trusted" not in str(seen)


@pytest.mark.parametrize("trusted", ["", "project", "project/.."])
async def test_a_trusted_project_counts_as_before(root: Path, trusted: str) -> None:
    """B15: a trusted directory covers the projects below it."""
    configured = {"trust": "explicit", "trusted": [str(root / trusted)]}

    seen = await observe(config_for(root, context=configured), root / "project")

    assert seen[instructions.KEY].baseline.endswith("Rules inside.")
    assert "inside" in [name for name, _ in seen[skills.KEY].value]


def test_a_worker_without_any_root_does_not_start(tmp_path: Path) -> None:
    """B2: the error names the key and says what to do."""
    config = config_for(tmp_path / "missing")

    with pytest.raises(ConfigError, match=r"location\.roots: not one root is a directory"):
        check_roots(config, "fairlead.toml")


def test_a_missing_root_of_one_tenant_is_reported_and_stops_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tenant = {"acme": {"location": {"roots": [str(tmp_path / "missing")]}}}

    check_roots(config_for(tmp_path, tenant=tenant), "fairlead.toml")

    (record,) = caplog.records
    assert record.message.startswith("root is no directory on this machine")
    assert vars(record)["key"] == "tenant.acme.location.roots"


def test_a_root_that_is_a_link_is_reported_with_its_directory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "disk")

    check_roots(config_for(tmp_path / "root"), "fairlead.toml")

    (record,) = caplog.records
    assert record.message.startswith("root goes through a link")
    assert vars(record)["directory"] == str(tmp_path / "disk")


def test_a_configuration_without_locations_starts(caplog: pytest.LogCaptureFixture) -> None:
    """Ingest refuses every session then, and says what to configure."""
    check_roots(Config(), "environment")

    assert caplog.records == []
