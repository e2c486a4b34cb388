"""Observation of a location: its environment, the date, and what cannot be read."""

import json
import platform
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from fairlead_schema.context import ObserveContext, Observed, Unavailable
from fairlead_schema.location import LocationRef
from fairlead_tools.app import answer
from fairlead_tools.observe import observe
from fairlead_tools.sources import date as date_source
from fairlead_tools.sources import environment


def at(directory: Path | str) -> LocationRef:
    return LocationRef(directory=str(directory))


async def test_a_sample_holds_every_source_in_rendering_order(tmp_path: Path) -> None:
    """F-03, F-25: environment, then date, observed together."""
    sample = await observe(ObserveContext(location=at(tmp_path)))

    assert [source.key for source in sample.observations] == ["core/environment", "core/date"]
    assert all(isinstance(source, Observed) for source in sample.observations)


def test_the_environment_is_told_in_an_env_block(tmp_path: Path) -> None:
    """F-23: working directory, workspace root, git, platform."""
    seen = environment.observe(at(tmp_path))

    assert seen.baseline.splitlines()[1:] == [
        "<env>",
        f"Working directory: {tmp_path}",
        f"Workspace root: {tmp_path}",
        "Git repository: no",
        f"Platform: {platform.system().lower()}",
        "</env>",
    ]


def test_the_root_is_the_nearest_directory_that_git_knows(tmp_path: Path) -> None:
    """F-23: from any depth below it; a worktree's `.git` file counts."""
    inner = tmp_path / "repo" / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()

    assert environment.observe(at(inner)).value == {
        "directory": str(inner),
        "root": str(tmp_path / "repo"),
        "git": True,
        "platform": platform.system().lower(),
    }
    (inner / ".git").write_text("gitdir: elsewhere")
    assert environment.observe(at(inner)).value["root"] == str(inner)


def test_the_environment_changes_with_the_place_and_not_with_time(tmp_path: Path) -> None:
    """F-05, F-24: equal places have equal values; another place has its own update text."""
    assert environment.observe(at(tmp_path)) == environment.observe(at(tmp_path))
    other = environment.observe(at(tmp_path / "other"))
    assert other.value != environment.observe(at(tmp_path)).value
    assert "changed" in other.update


def test_the_date_reads_like_a_calendar() -> None:
    """F-23: weekday, month, day, year."""
    seen = date_source.observe(date(2026, 8, 5))

    assert (seen.value, seen.baseline) == ("2026-08-05", "Today's date: Wed Aug 05 2026")


def test_only_midnight_changes_the_date() -> None:
    """F-24: within a day nothing differs; the next day tells its update."""
    today, tomorrow = date(2026, 12, 31), date(2027, 1, 1)

    assert date_source.observe(today) == date_source.observe(today)
    assert date_source.observe(tomorrow).value != date_source.observe(today).value
    assert date_source.observe(tomorrow).update.endswith("Fri Jan 01 2027")


async def test_a_place_that_cannot_be_read_is_unavailable_not_gone() -> None:
    """F-10: the source is in the sample with its reason, and the others are observed."""
    unreadable = "/" + "x" * 300

    sample = await observe(ObserveContext(location=at(unreadable)))

    place, day = sample.observations
    assert isinstance(place, Unavailable)
    assert place.key == "core/environment"
    assert place.reason
    assert isinstance(day, Observed)


async def test_a_directory_that_does_not_exist_is_still_a_place(tmp_path: Path) -> None:
    """F-23: a session may be told where it is before the place is made."""
    sample = await observe(ObserveContext(location=at(tmp_path / "later")))

    assert isinstance(sample.observations[0], Observed)


async def test_an_observation_is_answered_as_data(tmp_path: Path) -> None:
    """F-04: the sample on the wire."""
    asked = ObserveContext(location=at(tmp_path), agent="build")

    body = json.loads(await answer(asked.model_dump_json(by_alias=True).encode()))

    statuses = [source["status"] for source in body["data"]["observations"]]
    assert statuses == ["observed", "observed"]


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
async def test_what_is_no_observation_is_refused_with_a_typed_error(body: bytes) -> None:
    """F-17: malformed input is answered, never dropped."""
    answered: dict[str, Any] = json.loads(await answer(body))

    assert set(answered) == {"error"}
    assert answered["error"]["_tag"] == "InvalidRequestError"
    assert answered["error"]["message"]
