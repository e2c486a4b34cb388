"""The observation of a location: environment, date, and sources that cannot be read."""

import platform
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from fairlead_schema.context import ObserveContext, ObservedSource, UnavailableSource
from fairlead_schema.location import LocationRef
from fairlead_service.config.configuration import Config
from fairlead_service.config.context import ReferenceConfig
from fairlead_tools.context.observe import Observer
from fairlead_tools.context.project import ProjectFinder
from fairlead_tools.context.sources import date as date_source
from fairlead_tools.context.sources import environment
from services.tools.tests.conftest import answer_of


@pytest.fixture
def observer(tmp_path: Path) -> Observer:
    """An observer that does not use the files of this machine."""
    context = {"global_file": None, "cache": str(tmp_path / "cache")}
    return Observer(
        Config.model_validate(
            {"context": context, "skills": {"config_directory": None}, "location": {"roots": ["/"]}}
        )
    )


def at(directory: Path | str) -> LocationRef:
    return LocationRef(directory=str(directory))


def observe_environment(directory: Path) -> ObservedSource:
    projects = ProjectFinder(Config.model_validate({"location": {"roots": ["/"]}}))
    return environment.observe(at(directory), projects.find("default", at(directory)))


async def test_a_sample_holds_every_source_in_rendering_order(
    observer: Observer, tmp_path: Path
) -> None:
    """F-03, F-25: built-in sources, instructions, skills and references are observed together."""
    (tmp_path / "AGENTS.md").write_text("Be brief.")
    config = observer.config.model_copy(
        update={"reference": {"book": ReferenceConfig(path="/b", description="when lost")}}
    )

    sample = await Observer(config).observe(ObserveContext(location=at(tmp_path)))

    assert [source.key for source in sample.observations] == [
        "core/environment",
        "core/date",
        "core/instructions",
        "core/skills",
        "core/references",
    ]
    assert all(isinstance(source, ObservedSource) for source in sample.observations)


def test_the_environment_is_told_in_an_env_block(tmp_path: Path) -> None:
    """F-23: working directory, workspace root, git, platform."""
    observation = observe_environment(tmp_path)

    assert observation.baseline.splitlines()[1:] == [
        "<env>",
        f"Working directory: {tmp_path}",
        f"Workspace root: {tmp_path}",
        "Git repository: no",
        f"Platform: {platform.system().lower()}",
        "</env>",
    ]


def test_the_root_is_the_nearest_directory_that_git_knows(tmp_path: Path) -> None:
    """F-23: any depth below the root counts, and so does the `.git` file of a worktree."""
    inner = tmp_path / "repo" / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()

    assert observe_environment(inner).value == {
        "directory": str(inner),
        "root": str(tmp_path / "repo"),
        "git": True,
        "platform": platform.system().lower(),
    }
    (inner / ".git").write_text("gitdir: elsewhere")
    assert observe_environment(inner).value["root"] == str(inner)


def test_the_environment_changes_with_the_place_and_not_with_time(tmp_path: Path) -> None:
    """F-05, F-24: equal places have equal values, and a new place has an update text."""
    assert observe_environment(tmp_path) == observe_environment(tmp_path)
    other = observe_environment(tmp_path / "other")
    assert other.value != observe_environment(tmp_path).value
    assert "changed" in other.update


def test_the_date_reads_like_a_calendar() -> None:
    """F-23: weekday, month, day, year."""
    observation = date_source.observe(date(2026, 8, 5))

    assert (observation.value, observation.baseline) == (
        "2026-08-05",
        "Today's date: Wed Aug 05 2026",
    )


def test_only_midnight_changes_the_date() -> None:
    """F-24: the value changes with the day, and the next day has an update text."""
    today, tomorrow = date(2026, 12, 31), date(2027, 1, 1)

    assert date_source.observe(today) == date_source.observe(today)
    assert date_source.observe(tomorrow).value != date_source.observe(today).value
    assert date_source.observe(tomorrow).update.endswith("Fri Jan 01 2027")


async def test_a_place_that_cannot_be_read_is_unavailable_not_gone(observer: Observer) -> None:
    """F-10, M-07: the sample holds these sources with their reasons, and observes the others."""
    unreadable = "/" + "x" * 300

    sample = await observer.observe(ObserveContext(location=at(unreadable)))

    place, day, instructions, skills = sample.observations
    for source in (place, instructions, skills):
        assert isinstance(source, UnavailableSource)
        assert (source.why, source.reason) == ("unreadable", "File name too long")
    assert isinstance(day, ObservedSource)


async def test_a_directory_that_does_not_exist_is_still_a_place(
    observer: Observer, tmp_path: Path
) -> None:
    """F-23: a session may learn its location before the directory exists."""
    sample = await observer.observe(ObserveContext(location=at(tmp_path / "later")))

    assert isinstance(sample.observations[0], ObservedSource)


async def test_an_observation_is_answered_as_data(observer: Observer, tmp_path: Path) -> None:
    """F-04: the answer holds the sample."""
    request = ObserveContext(location=at(tmp_path), agent="build")

    body = await answer_of(
        ObserveContext, request.model_dump_json(by_alias=True).encode(), observer.observe
    )

    statuses = [source["status"] for source in body["data"]["observations"]]
    assert statuses == ["observed", "observed", "observed"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b'{"location": "here"}',
        b'{"location": {}}',
        b'{"location": {"directory": ""}}',
        b'{"location": {"directory": 7}}',
        b'{"location": {"directory": "/w", "workspaceID": "x"}}',
        b'{"location": {"directory": "/w"}, "agent": 7}',
        b"\xff",
    ],
)
async def test_what_is_no_observation_is_refused_with_a_typed_error(
    observer: Observer, body: bytes
) -> None:
    """F-17: malformed input gets a typed error."""
    answer = await answer_of(ObserveContext, body, observer.observe)

    assert set(answer) == {"error"}
    assert answer["error"]["_tag"] == "InvalidRequestError"
    assert answer["error"]["message"]


async def test_the_calendar_is_the_hosts_the_configurations_or_the_sessions(
    observer: Observer, tmp_path: Path
) -> None:
    """P-13, F-23: the two zones never share a day; the session's zone takes precedence."""
    context = observer.config.context.model_copy(update={"timezone": "Pacific/Kiritimati"})
    east = Observer(observer.config.model_copy(update={"context": context}))

    dates = [
        (
            await source_observer.observe(ObserveContext(location=at(tmp_path), timezone=zone))
        ).observations[1]
        for source_observer, zone in ((observer, None), (east, None), (east, "Etc/GMT+12"))
    ]

    here, kiritimati, west = (
        observation.value for observation in dates if isinstance(observation, ObservedSource)
    )
    assert here in {day(timedelta(days=days)) for days in (-1, 0, 1)}
    assert kiritimati > west


async def test_a_time_zone_that_the_host_lost_is_a_reason_and_no_crash(
    observer: Observer, tmp_path: Path
) -> None:
    """F-10: the date is unavailable, and the other sources are observed."""
    request = ObserveContext(location=at(tmp_path), timezone="Nowhere/Atlantis")

    sample = await observer.observe(request)

    assert [
        observation.key
        for observation in sample.observations
        if isinstance(observation, UnavailableSource)
    ] == ["core/date"]


def day(offset: timedelta) -> str:
    return (datetime.now().astimezone().date() + offset).isoformat()
