"""P-14: a watched location answers from memory, and the look after a change sees the change."""

import os
import random
import shutil
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from fairlead_schema.context import ContextSample, ObserveContext, UnavailableSource
from fairlead_schema.location import LocationRef
from fairlead_service.config.configuration import Config
from fairlead_tools.context.observe import Observer
from fairlead_tools.context.watch import file_watcher
from fairlead_tools.context.watch.file_watcher import CannotWatch, FileWatcher
from fairlead_tools.context.watch.looked_paths import LookedPath
from fairlead_tools.context.watch.warm_reads import IDLE_S
from fairlead_tools.metrics import LOCATION_LOOKS

QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")


class Place:
    """A project on a disk, one observer that watches it, and one that reads it each time."""

    def __init__(self, root: Path, watches_max: int = 8192) -> None:
        self.root = root
        self.home = root / "work" / "repo"
        self.deep = self.home / "src" / "deep"
        self.deep.mkdir(parents=True)
        (self.home / ".git").mkdir()
        (self.home / "AGENTS.md").write_text("one")
        self.watched = Observer(self._config(watches_max))
        self.plain = Observer(self._config(0))
        self.request = ObserveContext(
            location=LocationRef(directory=str(self.home / "src")),
            agent="build",
            read_directories=(str(self.deep),),
        )

    def _config(self, watches_max: int) -> Config:
        return Config.model_validate(
            {
                "location": {"roots": [str(self.root)]},
                "context": {
                    "global_file": str(self.root / "everywhere.md"),
                    "instructions": ["docs/rules.md"],
                    "watches_max": watches_max,
                },
                "skills": {"config_directory": str(self.root / "own")},
            }
        )

    async def look(self) -> ContextSample:
        return await self.watched.observe(self.request)

    async def read(self) -> ContextSample:
        return await self.plain.observe(self.request)

    async def warm(self) -> None:
        """Look until the watch is sure, and check that the next look reads nothing."""
        for _ in range(2):
            await self.look()
        before = looks("warm")
        await self.look()
        assert looks("warm") == before + 1


def looks(kind: str) -> float:
    return float(LOCATION_LOOKS.labels(kind)._value.get())  # noqa: SLF001


@pytest_asyncio.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(tmp_path)
    yield place
    await place.watched.close()
    await place.plain.close()


async def test_an_unchanged_location_is_not_read_again(place: Place) -> None:
    first, second = await place.look(), await place.look()
    reads = looks("read")

    samples = [await place.look() for _ in range(5)]

    assert looks("read") == reads
    assert [first, second, *samples] == [await place.read()] * 7


def point_elsewhere(link: Path) -> None:
    link.unlink()
    link.symlink_to("other.md")


def append(place: Place) -> None:
    with (place.home / "AGENTS.md").open("a") as file:
        file.write("more")


def save_atomically(place: Place) -> None:
    (place.home / "new").write_text("two, as editors save it")
    (place.home / "new").rename(place.home / "AGENTS.md")


def replace_parent(place: Place) -> None:
    (place.root / "work").rename(place.root / "gone")
    place.deep.mkdir(parents=True)
    (place.home / "AGENTS.md").write_text("another tree")


def write_skill(place: Place) -> None:
    skill = place.home / ".fairlead/skills/release/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: release\ndescription: How\n---\nTag.")


def link_file(place: Place) -> None:
    (place.home / "AGENTS.md").unlink()
    (place.home / "target.md").write_text("behind a link")
    (place.home / "AGENTS.md").symlink_to("target.md")


def write_in_rules(place: Place) -> None:
    (place.home / "src/docs").mkdir()
    (place.home / "src/docs/rules.md").write_text("rules")


CHANGES: dict[str, Callable[[Place], object]] = {
    "a file is written": lambda place: (place.home / "AGENTS.md").write_text("two"),
    "the same length": lambda place: (place.home / "AGENTS.md").write_text("eno"),
    "a file is appended to": append,
    "a file is saved as editors do": save_atomically,
    "a file is deleted": lambda place: (place.home / "AGENTS.md").unlink(),
    "a file is truncated": lambda place: os.truncate(place.home / "AGENTS.md", 1),
    "a nearer file appears": lambda place: (place.home / "src/AGENTS.md").write_text("near"),
    "a file below appears": lambda place: (place.deep / "AGENTS.md").write_text("deep"),
    "a global file appears": lambda place: (place.root / "everywhere.md").write_text("all"),
    "a configured file appears": write_in_rules,
    "the repository is gone": lambda place: (place.home / ".git").rmdir(),
    "a nearer repository": lambda place: (place.home / "src/.git").mkdir(),
    "a skill appears": write_skill,
    "a link takes its place": link_file,
    "a directory above is replaced": replace_parent,
}


@pytest.mark.parametrize("change", CHANGES)
async def test_the_look_right_after_a_change_sees_it(place: Place, change: str) -> None:
    await place.warm()
    before = await place.look()

    CHANGES[change](place)

    after = await place.look()
    assert after == await place.read()
    assert after != before
    await place.warm()


async def test_a_change_behind_links_is_seen(place: Place) -> None:
    """A link to a file, a link to a link, a second name of a file, and a link on the way."""
    file, other = place.root / "shared.md", place.root / "other.md"
    file.write_text("shared")
    other.write_text("other")
    (place.root / "hop").symlink_to("shared.md")
    (place.root / "everywhere.md").symlink_to("hop")
    (place.home / "AGENTS.md").unlink()
    os.link(file, place.home / "AGENTS.md")
    for change in (
        lambda: file.write_text("shared again"),
        lambda: point_elsewhere(place.root / "hop"),
        lambda: other.write_text("other again"),
    ):
        await place.warm()
        before = await place.look()
        change()
        assert await place.look() == await place.read() != before


async def test_a_skill_that_changes_deep_inside_is_seen(place: Place) -> None:
    write_skill(place)
    await place.warm()
    skill = place.home / ".fairlead/skills/release/SKILL.md"
    skill.write_text("---\nname: release\ndescription: How else\n---\nTag.")
    assert await place.look() == await place.read()
    await place.warm()
    shutil.rmtree(skill.parent)
    assert await place.look() == await place.read()


async def test_what_does_not_count_keeps_the_location_warm(place: Place) -> None:
    await place.warm()
    reads = looks("read")
    for number in range(50):
        (place.home / f"file{number}.py").write_text("x")
        (place.home / ".git" / f"object{number}").write_text("x")

    await place.look()

    assert looks("read") == reads


@pytest.mark.parametrize("seed", range(4))
async def test_after_any_changes_a_look_equals_a_read(place: Place, seed: int) -> None:
    """Random changes, many looks: the observer that watches never differs from the one that reads."""
    chance = random.Random(seed)  # noqa: S311 - a test
    files = ["AGENTS.md", "src/AGENTS.md", "src/deep/AGENTS.md", "src/docs/rules.md"]
    for step in range(60):
        file = place.home / chance.choice(files)
        match chance.randrange(5):
            case 0:
                file.unlink(missing_ok=True)
            case 1 if file.parent != place.home:
                shutil.rmtree(file.parent, ignore_errors=True)
            case 2:
                pass
            case _:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(f"step {step}")
        for _ in range(chance.randrange(1, 4)):
            assert await place.look() == await place.read(), step


async def test_unavailable_is_never_kept(place: Place) -> None:
    """F-37: the look after the repair sees the file, and a look before it is not taken for it."""
    (place.home / "AGENTS.md").write_bytes(b"\xff\xfe\x00")
    for _ in range(3):
        observed = {source.key: source for source in (await place.look()).observations}
        assert isinstance(observed["core/instructions"], UnavailableSource)
    warm = looks("warm")
    (place.home / "AGENTS.md").write_text("mended")

    assert await place.look() == await place.read()
    assert looks("warm") == warm


async def test_a_flood_of_news_makes_every_location_be_read_again(place: Place) -> None:
    """The kernel drops what its queue cannot hold. Then nothing that is kept counts."""
    limit = int(QUEUE.read_text())  # noqa: ASYNC240 - a file in memory
    write_skill(place)
    await place.warm()
    noise = [place.home / ".fairlead/skills" / name for name in ("a", "b")]
    for file in noise:
        file.touch()
    for number in range(limit + 10):
        os.utime(noise[number % 2])
    (place.home / "AGENTS.md").write_text("after the flood")

    assert await place.look() == await place.read()


async def test_an_idle_location_is_no_longer_watched(place: Place) -> None:
    await place.warm()
    warm = place.watched._warm  # noqa: SLF001
    watcher = warm._watcher  # noqa: SLF001
    assert watcher is not None
    assert watcher.count > 0

    warm.clean(time.monotonic() + IDLE_S + 1)

    assert watcher.count == 0
    await place.warm()


async def test_changes_leave_no_watches_behind(place: Place) -> None:
    await place.warm()
    warm = place.watched._warm  # noqa: SLF001
    watcher = warm._watcher  # noqa: SLF001
    assert watcher is not None
    warm.clean(time.monotonic())
    before = watcher.count
    for number in range(20):
        (place.home / "AGENTS.md").write_text(f"{number}")
        await place.look()
    await place.warm()

    warm.clean(time.monotonic())

    assert watcher.count == before


@pytest.fixture
def few(tmp_path: Path) -> Place:
    """A place whose observer may hold fewer watches than the place needs."""
    return Place(tmp_path, watches_max=3)


async def test_beyond_the_limit_of_watches_every_look_reads(
    few: Place, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    reads = looks("read")
    for number in range(4):
        (few.home / "AGENTS.md").write_text(f"{number}")
        assert await few.look() == await few.read()

    assert looks("read") == reads + 4
    assert caplog.text.count("location not watched") == 1


async def test_where_inotify_is_missing_every_look_reads(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(**_options: object) -> None:
        raise AttributeError("function inotify_init1 not found")

    monkeypatch.setattr(file_watcher, "INotify", missing)
    for number in range(3):
        (place.home / "AGENTS.md").write_text(f"{number}")
        assert await place.look() == await place.read()


def test_a_disk_of_another_machine_is_not_watched() -> None:
    """`/proc` tells nobody of its changes, as a network disk does not."""
    watcher = FileWatcher(100)
    with pytest.raises(CannotWatch, match="no disk of this machine"):
        watcher.watch([LookedPath("/proc/self/status", inside=True)])
    assert watcher.count == 0
    watcher.close()


def test_two_watches_share_what_they_both_need(tmp_path: Path) -> None:
    watcher = FileWatcher(100)
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    one, other = (watcher.watch([LookedPath(str(tmp_path / name), inside=True)]) for name in "ab")
    (tmp_path / "a").write_text("changed")
    watcher.drain()
    assert (one.changed, other.changed) == (True, False)

    assert watcher.unwatch(one)
    (tmp_path / "b").unlink()
    watcher.drain()
    assert other.changed
    assert watcher.unwatch(other)
    assert watcher.count == 0
    watcher.close()
