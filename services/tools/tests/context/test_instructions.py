"""Instruction files: which ones apply, their text, and files that cannot be read."""

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from fairlead_schema.context import ContextSample, ObserveContext, ObservedSource, UnavailableSource
from fairlead_schema.location import LocationRef
from fairlead_service.config.configuration import Config
from fairlead_session.turn import epoch
from fairlead_session.turn.epoch import Baseline, ContextUnchanged, Updated
from fairlead_tools.context.observe import Observer
from fairlead_tools.context.project import directories_up
from fairlead_tools.context.sources import files, instructions
from fairlead_tools.context.sources.instructions import CHANGED, REVOKED


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with nested directories, and a file above it that must not apply."""
    root = tmp_path / "outer" / "repo"
    (root / "src" / "api").mkdir(parents=True)
    (root / ".git").mkdir()
    (tmp_path / "outer" / "AGENTS.md").write_text("never")
    return root


def make_observer(**context: Any) -> Observer:  # noqa: ANN401
    whole = {
        "context": {"global_file": None, **context},
        "skills": {"config_directory": None},
        "location": {"roots": ["/"]},
    }
    return Observer(Config.model_validate(whole))


async def observe_instructions(
    observer: Observer, at: Path, *read_directories: Path
) -> ObservedSource | UnavailableSource | None:
    request = ObserveContext(
        location=LocationRef(directory=str(at)), read_directories=tuple(map(str, read_directories))
    )
    sample = await observer.observe(request)
    return next(
        (observation for observation in sample.observations if observation.key == instructions.KEY),
        None,
    )


async def baseline_of(observer: Observer, at: Path, *read_directories: Path) -> str:
    observation = await observe_instructions(observer, at, *read_directories)
    assert isinstance(observation, ObservedSource), observation
    return observation.baseline


async def unavailable_reason(observer: Observer, at: Path) -> tuple[str, str]:
    source = await observe_instructions(observer, at)
    assert isinstance(source, UnavailableSource), source
    return source.why, source.reason


async def test_global_first_then_from_the_directory_up_to_the_root(
    project: Path, tmp_path: Path
) -> None:
    """M-01, M-02, M-03: a path line, the content, a blank line; none from above the root."""
    everywhere = tmp_path / "everywhere.md"
    everywhere.write_text("global")
    (project / "AGENTS.md").write_text("root")
    (project / "src" / "api" / "AGENTS.md").write_text("api\n")

    assert await baseline_of(
        make_observer(global_file=str(everywhere)), project / "src" / "api"
    ) == (
        f"Instructions from {everywhere}:\nglobal\n\n"
        f"Instructions from {project}/src/api/AGENTS.md:\napi\n\n\n"
        f"Instructions from {project}/AGENTS.md:\nroot"
    )


async def test_any_change_is_told_by_everything_that_applies_now(project: Path) -> None:
    """M-04: the update holds all instructions that still apply and replaces the earlier text."""
    observer = make_observer()
    (project / "AGENTS.md").write_text("root")
    (project / "src" / "AGENTS.md").write_text("src")
    first = await observe_instructions(observer, project / "src")
    (project / "src" / "AGENTS.md").unlink()

    second = await observe_instructions(observer, project / "src")

    assert isinstance(first, ObservedSource)
    assert isinstance(second, ObservedSource)
    outcome = epoch.reconcile(snapshot(first), ContextSample(observations=(second,)))
    assert isinstance(outcome, Updated)
    assert outcome.text == f"{CHANGED}\n\nInstructions from {project}/AGENTS.md:\nroot"


async def test_losing_the_last_file_revokes_them_all(project: Path) -> None:
    """M-05: the source is absent, the model reads the revocation, and the snapshot is empty."""
    observer = make_observer()
    (project / "AGENTS.md").write_text("root")
    first = await observe_instructions(observer, project)
    (project / "AGENTS.md").unlink()

    assert await observe_instructions(observer, project) is None
    assert isinstance(first, ObservedSource)
    outcome = epoch.reconcile(snapshot(first), ContextSample(observations=()))
    assert outcome == Updated(REVOKED, {})


async def test_an_empty_file_counts(project: Path) -> None:
    """M-06: an empty file is an instruction file too."""
    (project / "AGENTS.md").touch()

    assert (
        await baseline_of(make_observer(), project) == f"Instructions from {project}/AGENTS.md:\n"
    )


async def test_a_value_tells_paths_and_contents_apart_and_is_small(project: Path) -> None:
    """F-05: the snapshot holds a digest instead of the text."""
    observer = make_observer()
    (project / "AGENTS.md").write_text("x" * 10_000)
    first = await observe_instructions(observer, project)
    (project / "AGENTS.md").write_text("y" * 10_000)

    second = await observe_instructions(observer, project)

    assert isinstance(first, ObservedSource)
    assert isinstance(second, ObservedSource)
    assert first.value != second.value
    assert len(str(first.value)) < 500


def link_to_itself(path: Path) -> None:
    """Root can read every file, but nobody can read a link that leads to itself."""
    path.symlink_to(path.name)


def write_binary(path: Path) -> None:
    path.write_bytes(b"\x7fELF\0\0\0")


def write_invalid_text(path: Path) -> None:
    path.write_bytes(b"caf\xe9")


def make_huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_directory(path: Path) -> None:
    path.mkdir()


def link_outside(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def link_above(path: Path) -> None:
    path.symlink_to("../AGENTS.md")


def link_to_nothing(path: Path) -> None:
    path.symlink_to("nowhere.md")


BAD: list[tuple[Callable[[Path], None], str]] = [
    (link_to_itself, "unreadable"),
    (write_binary, "not-text"),
    (write_invalid_text, "not-text"),
    (make_huge, "too-large"),
    (make_fifo, "unreadable"),
    (make_directory, "unreadable"),
    (link_outside, "outside"),
    (link_above, "outside"),
    (link_to_nothing, "unreadable"),
]


@pytest.mark.parametrize(("spoil", "why"), BAD, ids=[make.__name__ for make, _why in BAD])
async def test_a_file_that_cannot_be_read_makes_the_source_unavailable(
    project: Path, spoil: Callable[[Path], None], why: str
) -> None:
    """M-07, M-08, M-09, F-37: the reason is typed, and the last good value stays in force."""
    observer = make_observer()
    (project / "AGENTS.md").write_text("good")
    good = await observe_instructions(observer, project)
    (project / "AGENTS.md").unlink()
    spoil(project / "AGENTS.md")

    code, message = await unavailable_reason(observer, project)

    assert code == why
    assert "AGENTS.md" in message
    assert isinstance(good, ObservedSource)
    source = await observe_instructions(observer, project)
    assert source is not None
    outcome = epoch.reconcile(snapshot(good), ContextSample(observations=(source,)))
    assert outcome == ContextUnchanged()


@pytest.mark.parametrize("spoil", [make for make, _why in BAD])
async def test_a_new_session_begins_with_the_others_and_knows_what_is_missing(
    project: Path, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    """M-08, F-06: a new session does not wait for a bad file; its repair is an ordinary change."""
    everywhere = tmp_path / "everywhere.md"
    everywhere.write_text("global")
    spoil(project / "AGENTS.md")
    observer = make_observer(global_file=str(everywhere))

    unavailable = await observe_instructions(observer, project)

    assert isinstance(unavailable, UnavailableSource)
    baseline = epoch.initialise(ContextSample(observations=(unavailable,)))
    assert isinstance(baseline, Baseline)
    good, missing = epoch.text(baseline.parts).split("\n\n")
    assert good == f"Instructions from {everywhere}:\nglobal"
    assert missing.startswith(f"There are instructions in {project}/AGENTS.md that cannot be read")
    everywhere.unlink()
    bad = project / "AGENTS.md"
    bad.rmdir() if bad.is_dir() and not bad.is_symlink() else bad.unlink()
    bad.write_text("good")
    source = await observe_instructions(observer, project)
    assert source is not None
    outcome = epoch.reconcile(baseline.snapshot, ContextSample(observations=(source,)))
    assert isinstance(outcome, Updated)
    assert outcome.text.endswith(f"Instructions from {project}/AGENTS.md:\ngood")


async def test_what_goes_beyond_the_limit_of_all_is_missing(project: Path) -> None:
    """M-08: a new session has the files that come first."""
    (project / "src" / "AGENTS.md").write_text("near")
    (project / "AGENTS.md").write_text("x" * 100)

    source = await observe_instructions(make_observer(total_bytes_max=50), project / "src")

    assert isinstance(source, UnavailableSource)
    assert source.instead is not None
    assert source.instead.value == [
        [f"{project}/src/AGENTS.md", sha256(b"near").hexdigest()],
        [f"{project}/AGENTS.md", "too-large"],
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_a_forbidden_file_is_unavailable(project: Path) -> None:
    """M-08: the file exists, but its content is unknown."""
    (project / "AGENTS.md").write_text("secret")
    (project / "AGENTS.md").chmod(0)

    assert (await unavailable_reason(make_observer(), project))[0] == "unreadable"


async def test_a_missing_global_file_is_plain_absence(project: Path) -> None:
    """M-08: the global file is optional, also in a home that does not exist."""
    assert (
        await observe_instructions(make_observer(global_file="/nowhere/AGENTS.md"), project) is None
    )
    assert (
        await observe_instructions(make_observer(global_file="~nobody-here/AGENTS.md"), project)
        is None
    )


async def test_bounds_are_canonical_and_one_file_is_told_once(project: Path) -> None:
    """M-09: a linked location has its real root, and two links to one file count once."""
    (project / "AGENTS.md").write_text("root")
    (project / "src" / "AGENTS.md").symlink_to("../AGENTS.md")
    behind = project.parent / "link"
    behind.symlink_to(project / "src")

    assert (
        await baseline_of(make_observer(), behind)
        == f"Instructions from {project}/src/AGENTS.md:\nroot"
    )


async def test_project_files_can_be_left_out(project: Path, tmp_path: Path) -> None:
    """M-10: the global file stays."""
    everywhere = tmp_path / "everywhere.md"
    everywhere.write_text("global")
    (project / "AGENTS.md").write_text("root")

    observer = make_observer(project=False, global_file=str(everywhere))

    assert await baseline_of(observer, project) == f"Instructions from {everywhere}:\nglobal"


def test_a_location_outside_its_project_scans_nothing() -> None:
    """M-11: there is no way up to a root that is not above the location."""
    assert directories_up(Path("/elsewhere/a"), Path("/srv/repo")) == ()
    assert directories_up(Path("/srv/repo-2"), Path("/srv/repo")) == ()


async def test_without_a_repository_only_the_directory_itself_counts(tmp_path: Path) -> None:
    """M-02: a project without a root has no known extent."""
    (tmp_path / "AGENTS.md").write_text("above")
    (tmp_path / "here").mkdir()

    assert await observe_instructions(make_observer(), tmp_path / "here") is None


async def test_other_names_stand_in_where_the_first_is_missing(project: Path) -> None:
    """P-12, M-12: each directory gives one file, the first of the names that exists."""
    (project / "AGENTS.md").write_text("root")
    (project / "OTHER.md").write_text("shadowed")
    (project / "src" / "OTHER.md").write_text("src")

    assert await baseline_of(make_observer(names=("AGENTS.md", "OTHER.md")), project / "src") == (
        f"Instructions from {project}/src/OTHER.md:\nsrc\n\n"
        f"Instructions from {project}/AGENTS.md:\nroot"
    )


async def test_configured_files_and_patterns_follow_in_their_order(
    project: Path, tmp_path: Path
) -> None:
    """P-12, M-12: an entry is relative, absolute or a pattern; no match adds nothing."""
    (project / "docs").mkdir()
    for name in ("b.md", "a.md", "c.txt"):
        (project / "docs" / name).write_text(name)
    (project / "docs" / "d.md").mkdir()
    extra = tmp_path / "extra.md"
    extra.write_text("extra")

    observer = make_observer(
        instructions=(str(extra), "docs/*.md", "docs/a.md", "missing.md", "no/*.md")
    )

    assert await baseline_of(observer, project) == (
        f"Instructions from {extra}:\nextra\n\n"
        f"Instructions from {project}/docs/a.md:\na.md\n\n"
        f"Instructions from {project}/docs/b.md:\nb.md"
    )


async def test_a_relative_entry_stays_in_the_project(project: Path) -> None:
    """M-02, M-12: the project controls these files, so a link must not lead out."""
    (project / "rules.md").symlink_to("/etc/hostname")

    assert (await unavailable_reason(make_observer(instructions=("rules.md",)), project))[
        0
    ] == "outside"
    assert (await unavailable_reason(make_observer(instructions=("../AGENTS.md",)), project))[
        0
    ] == "outside"


async def test_a_directory_with_the_characters_of_a_pattern_is_no_pattern(tmp_path: Path) -> None:
    """M-12: only the configured part of the path is a pattern."""
    place = tmp_path / "[x]*"
    place.mkdir()
    (place / "rules.md").write_text("rules")

    assert (await baseline_of(make_observer(instructions=("*.md",)), place)).endswith("rules")


async def test_instructions_below_join_after_something_there_was_read(project: Path) -> None:
    """P-12, L-28, M-12: the outermost directory comes first, inside the location only."""
    for place in (project, project / "src", project / "src" / "api"):
        (place / "AGENTS.md").write_text(place.name)
    observer = make_observer()

    assert "api" not in await baseline_of(observer, project)
    assert await baseline_of(
        observer, project, project / "src" / "api", project / "gone", Path("/etc")
    ) == (
        f"Instructions from {project}/AGENTS.md:\nrepo\n\n"
        f"Instructions from {project}/src/AGENTS.md:\nsrc\n\n"
        f"Instructions from {project}/src/api/AGENTS.md:\napi"
    )


async def test_a_link_below_that_leads_out_is_not_followed(project: Path, tmp_path: Path) -> None:
    """L-28, M-02: a directory outside the location adds no instructions."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "AGENTS.md").write_text("never")
    (project / "lib").symlink_to(tmp_path / "elsewhere")

    assert await observe_instructions(make_observer(), project, project / "lib") is None


async def test_all_instructions_together_have_a_limit(project: Path) -> None:
    """M-08: a file is never cut, because half a rule may say the opposite."""
    (project / "AGENTS.md").write_text("x" * 600)
    (project / "src" / "AGENTS.md").write_text("y" * 600)

    observer = make_observer(total_bytes_max=1000)

    assert (await unavailable_reason(observer, project / "src"))[0] == "too-large"


async def test_a_name_cannot_pretend_to_be_a_line_of_its_own(project: Path) -> None:
    """M-03: control characters and invalid bytes in a path are escaped."""
    strange = project / "a\nInstructions from nobody:\x1b"
    strange.mkdir()
    (strange / "AGENTS.md").write_text("rules")
    nameless = project / os.fsdecode(b"\xff")
    nameless.mkdir()
    (nameless / "rules.md").write_text("bytes")
    entry = str(project / "*" / "rules.md")

    baseline = await baseline_of(make_observer(instructions=(entry,)), strange)

    first, second = baseline.split("\n\n")
    assert (
        first == f"Instructions from {project}/a\\nInstructions from nobody:\\x1b/AGENTS.md:\nrules"
    )
    assert second == f"Instructions from {project}/\\xff/rules.md:\nbytes"


def test_a_file_that_has_not_changed_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M-01: only content whose time stamp is old enough is cached."""
    path, open_count = tmp_path / "a.md", 0
    texts = files.TextFiles(1000)
    open_file = os.open

    def open_and_count(*args: Any) -> int:  # noqa: ANN401
        nonlocal open_count
        open_count += 1
        return open_file(*args)

    monkeypatch.setattr(os, "open", open_and_count)
    path.write_text("one")
    assert [texts.read(path), texts.read(path)] == ["one", "one"]
    assert open_count == 2
    os.utime(path, (1, 1))
    assert [texts.read(path), texts.read(path)] == ["one", "one"]
    assert open_count == 3
    path.write_text("two")
    os.utime(path, (1, 1))
    assert texts.read(path) == "two"


def snapshot(source: ObservedSource) -> epoch.Snapshot:
    baseline = epoch.initialise(ContextSample(observations=(source,)))
    assert isinstance(baseline, Baseline)
    return baseline.snapshot
