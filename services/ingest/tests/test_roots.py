"""Configured roots: sessions start in and move to directories inside a root only."""

from pathlib import Path
from typing import Any

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.settings import IngestSettings
from fairlead_ingest.verbs.profile.create import create
from fairlead_ingest.verbs.profile.move import move
from fairlead_schema.commands.session import MoveSession
from fairlead_schema.errors import InvalidRequest
from fairlead_service.config.configuration import Config
from services.ingest.tests.conftest import CONFIG, create_command, events


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a directory, a link to that directory, and a link to the outside."""
    root = tmp_path / "root"
    (root / "inside").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "root-2").mkdir()
    (root / "link").symlink_to(root / "inside")
    (root / "escape").symlink_to(tmp_path / "outside")
    return root


@pytest.fixture
def context_with_roots(eventlog: EventLog, root: Path) -> CommandContext:
    location = {"roots": [str(root), "/srv/projects"], "default": str(root)}
    return CommandContext(
        eventlog, IngestSettings(Config.model_validate({**CONFIG, "location": location}))
    )


INSIDE = (".", "inside", "inside/..", "link", "not/there/yet")
OUTSIDE = ("..", "../outside", "../root-2", "escape", "escape/below", "inside/../../outside")


@pytest.mark.parametrize("path", INSIDE)
async def test_a_location_inside_a_root_is_taken_as_it_is_spelled(
    context_with_roots: CommandContext, root: Path, path: str
) -> None:
    directory = f"{root}/{path}"

    info = await create(
        context_with_roots, "default", create_command(location={"directory": directory})
    )

    assert info.location.directory == directory


@pytest.mark.parametrize("path", OUTSIDE)
async def test_a_location_outside_all_roots_is_refused_with_the_roots(
    context_with_roots: CommandContext, root: Path, path: str
) -> None:
    command = create_command(id="ses_1", location={"directory": f"{root}/{path}"})

    with pytest.raises(InvalidRequest) as refusal:
        await create(context_with_roots, "default", command)

    assert refusal.value.body.field == "location.directory"
    assert f"{root}, /srv/projects" in refusal.value.body.message
    assert await events(context_with_roots.eventlog) == []


@pytest.mark.parametrize("directory", ["relative", "/", "/srv/projects\0", "/srv/projects-2"])
async def test_odd_locations_are_outside(
    context_with_roots: CommandContext, directory: str
) -> None:
    with pytest.raises(InvalidRequest):
        await create(
            context_with_roots, "default", create_command(location={"directory": directory})
        )


async def test_a_session_that_names_no_location_has_the_default(
    context_with_roots: CommandContext, root: Path
) -> None:
    info = await create(context_with_roots, "default", create_command())

    assert info.location.directory == str(root)


async def test_a_move_outside_is_refused_and_a_move_inside_is_done(
    context_with_roots: CommandContext, root: Path
) -> None:
    await create(context_with_roots, "default", create_command(id="ses_1"))

    def move_to(path: str) -> MoveSession:
        body = {"sessionID": "ses_1", "location": {"directory": f"{root}/{path}"}}
        return MoveSession.model_validate(body)

    with pytest.raises(InvalidRequest, match="outside the configured roots"):
        await move(context_with_roots, "default", move_to("escape"))
    assert len(await events(context_with_roots.eventlog)) == 1
    await move(context_with_roots, "default", move_to("inside"))

    assert len(await events(context_with_roots.eventlog)) == 2


def context_for(eventlog: EventLog, **sections: Any) -> CommandContext:  # noqa: ANN401
    """A context whose configuration opens only what these sections say."""
    return CommandContext(
        eventlog, IngestSettings(Config.model_validate({**CONFIG, "location": {}, **sections}))
    )


@pytest.mark.parametrize("directory", ["/", "/work-2", "/work/..", "/etc", "/work/../etc"])
async def test_without_roots_only_the_default_and_what_is_below_it_is_open(
    eventlog: EventLog, directory: str
) -> None:
    """B2: a session at `/` made every path of the machine an inside path."""
    context = context_for(eventlog, location={"default": "/work"})
    command = create_command(location={"directory": directory})

    with pytest.raises(InvalidRequest, match="outside the configured roots: /work"):
        await create(context, "default", command)
    inside = await create(
        context, "default", create_command(location={"directory": "/work/project"})
    )

    assert inside.location.directory == "/work/project"


async def test_without_a_default_a_session_must_name_its_location(eventlog: EventLog) -> None:
    """The roots are open, so the error must not say that nothing is."""
    context = context_for(eventlog, location={"roots": ["/"]})

    with pytest.raises(InvalidRequest, match=r"there is no `default` in \[location\]"):
        await create(context, "default", create_command())


async def test_without_roots_and_without_a_default_nothing_is_open(eventlog: EventLog) -> None:
    """B2: the working directory of ingest, often `/`, opens nothing."""
    context = context_for(eventlog)

    for command in (create_command(), create_command(location={"directory": "/work"})):
        with pytest.raises(InvalidRequest, match=r"set `roots` or `default` in \[location\]"):
            await create(context, "default", command)


async def test_a_tenant_cannot_name_the_directory_of_another(eventlog: EventLog) -> None:
    """B2: the refusal names the directory and the key, and no root of another tenant."""
    context = context_for(
        eventlog,
        tenant={
            "acme": {"location": {"roots": ["/srv/acme"], "default": "/srv/acme/main"}},
            "rival": {"location": {"roots": ["/srv/rival"]}},
        },
        location={"roots": ["/srv/shared"]},
    )
    command = create_command(location={"directory": "/srv/acme/secret"})

    for tenant in ("rival", "default"):
        with pytest.raises(InvalidRequest) as refusal:
            await create(context, tenant, command)
        message = refusal.value.body.message
        assert message.startswith("/srv/acme/secret is outside the configured roots: /srv/")
        assert "[tenant.<name>.location]" in message
        assert "/srv/acme" not in message.removeprefix("/srv/acme/secret")
    own = await create(context, "acme", create_command())
    assert own.location.directory == "/srv/acme/main"


async def test_a_relative_directory_is_refused_at_create_and_move(eventlog: EventLog) -> None:
    """D17: each machine would resolve it from another directory."""
    context = context_for(eventlog, location={"roots": ["/"], "default": "/work"})
    await create(context, "default", create_command(id="ses_1"))
    moved = {"sessionID": "ses_1", "location": {"directory": "project"}}

    with pytest.raises(InvalidRequest, match="'project' is a relative path"):
        await create(context, "default", create_command(location={"directory": "project"}))
    with pytest.raises(InvalidRequest, match="'project' is a relative path"):
        await move(context, "default", MoveSession.model_validate(moved))
