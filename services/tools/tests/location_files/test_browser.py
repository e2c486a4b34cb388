"""`file.list`, `file.read` and `file.find`: what a client may see of a location."""

import os
from base64 import b64decode
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from fairlead_eventlog.memory.registers import MemoryApprovals
from fairlead_schema.commands.location_files import PART_BYTES_MAX, FindFiles, ListFiles, ReadFile
from fairlead_schema.errors import FileMissing, Forbidden, InvalidRequest
from fairlead_schema.identity.restrictions import Restrictions
from fairlead_schema.location import LocationRef, project_id
from fairlead_schema.subjects import BY_HEADER, RESTRICTIONS_HEADER
from fairlead_service.config.configuration import Config
from fairlead_service.rpc import caller
from fairlead_tools.location_files.browser import LocationFiles

RULES = [
    {"action": "*", "resource": "*", "effect": "allow"},
    {"action": "read", "resource": "*.env", "effect": "ask"},
    {"action": "read", "resource": "secret/*", "effect": "deny"},
]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "src/main.py").write_text("print('hi')\n")
    (work / "src/maintenance.md").write_text("# notes\n")
    (work / "page.html").write_text("<script>alert(1)</script>")
    (work / "app.env").write_text("TOKEN=1")
    (work / "secret").mkdir()
    (work / "secret/key").write_text("k")
    return work


@pytest.fixture
def approvals() -> MemoryApprovals:
    return MemoryApprovals()


@pytest.fixture
def files(work: Path, approvals: MemoryApprovals) -> LocationFiles:
    config = Config.model_validate(
        {"location": {"roots": [str(work)]}, "agent": {"build": {"permissions": RULES}}}
    )
    files = LocationFiles(config)
    files.approvals = approvals
    return files


def _list(work: Path, path: str = ".") -> ListFiles:
    return ListFiles(location=LocationRef(directory=str(work)), path=path)


def _read(work: Path, path: str, offset: int = 0) -> ReadFile:
    return ReadFile(location=LocationRef(directory=str(work)), path=path, offset=offset)


def _restricted(restrictions: Restrictions) -> AbstractContextManager[None]:
    headers = {BY_HEADER: "key:1", RESTRICTIONS_HEADER: restrictions.model_dump_json()}
    return caller.caller_of("fairlead.api.default.file.list", headers)


async def test_a_directory_is_listed_with_paths_from_the_location_on(
    files: LocationFiles, work: Path
) -> None:
    top = await files.list("default", _list(work))
    inner = await files.list("default", _list(work, "src/"))

    assert [(entry.path, entry.type) for entry in top.entries] == [
        ("secret", "directory"),
        ("src", "directory"),
        ("app.env", "file"),
        ("page.html", "file"),
    ]
    assert [entry.path for entry in inner.entries] == ["src/main.py", "src/maintenance.md"]


async def test_a_file_is_read_in_parts_of_one_version(files: LocationFiles, work: Path) -> None:
    content = os.urandom(PART_BYTES_MAX + 10)
    (work / "large.bin").write_bytes(content)

    first = await files.read("default", _read(work, "large.bin"))
    second = await files.read("default", _read(work, "large.bin", PART_BYTES_MAX))
    (work / "large.bin").write_bytes(content + b"x")
    changed = await files.read("default", _read(work, "large.bin", PART_BYTES_MAX))

    assert b64decode(first.data) + b64decode(second.data) == content
    assert (first.size, first.mime) == (len(content), "application/octet-stream")
    assert first.version == second.version != changed.version


async def test_the_media_type_follows_from_the_file(files: LocationFiles, work: Path) -> None:
    (work / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n....")

    mimes = [
        (await files.read("default", _read(work, name))).mime
        for name in ("src/main.py", "page.html", "dot.png")
    ]

    assert mimes == ["text/x-python", "text/html", "image/png"]


@pytest.mark.parametrize(
    "path", ["../outside.txt", "/etc/passwd", "src/../../outside.txt", "out", "out/passwd", "pipe"]
)
async def test_no_path_leads_out_of_the_location(
    files: LocationFiles, work: Path, path: str
) -> None:
    """L-03: links, dots and other kinds of files."""
    (work.parent / "outside.txt").write_text("secret")
    (work / "out").symlink_to("/etc")
    os.mkfifo(work / "pipe")

    with pytest.raises(InvalidRequest, match="cannot be used"):
        await files.read("default", _read(work, path))
    with pytest.raises(InvalidRequest):
        await files.list("default", _list(work, path))


async def test_what_a_person_would_be_asked_about_is_not_served(
    files: LocationFiles, work: Path, approvals: MemoryApprovals
) -> None:
    with pytest.raises(Forbidden, match=r"app\.env"):
        await files.read("default", _read(work, "app.env"))
    with pytest.raises(Forbidden):
        await files.read("default", _read(work, "secret/key"))

    await approvals.save("default", project_id(str(work)), "read", ["app.env"])

    assert b64decode((await files.read("default", _read(work, "app.env"))).data) == b"TOKEN=1"


async def test_missing_files_and_wrong_kinds_say_so(files: LocationFiles, work: Path) -> None:
    with pytest.raises(FileMissing, match=r"nowhere\.txt"):
        await files.read("default", _read(work, "nowhere.txt"))
    with pytest.raises(InvalidRequest, match="Not a file"):
        await files.read("default", _read(work, "src"))
    with pytest.raises(InvalidRequest, match="Not a directory"):
        await files.list("default", _list(work, "page.html"))


async def test_a_location_outside_the_roots_is_refused(files: LocationFiles, work: Path) -> None:
    with pytest.raises(InvalidRequest, match="outside the configured roots"):
        await files.list("default", _list(work.parent))
    with _restricted(Restrictions(roots=(str(work / "src"),))):
        with pytest.raises(Forbidden, match="only locations inside"):
            await files.list("default", _list(work))
        assert (await files.list("default", _list(work / "src"))).entries
    with (
        _restricted(Restrictions(agents=("plan",))),
        pytest.raises(Forbidden, match="only the agents plan"),
    ):
        await files.list("default", _list(work))


async def test_an_unknown_agent_is_refused(files: LocationFiles, work: Path) -> None:
    command = _list(work).model_copy(update={"agent": "nobody"})

    with pytest.raises(InvalidRequest, match="Unknown agent"):
        await files.list("default", command)


async def test_entries_are_found_by_letters_the_best_first(
    files: LocationFiles, work: Path
) -> None:
    def find(query: str, **more: object) -> FindFiles:
        location = LocationRef(directory=str(work))
        return FindFiles.model_validate({"location": location, "query": query, **more})

    found = await files.find("default", find("main"))
    scattered = await files.find("default", find("smn.py"))
    directories = await files.find("default", find("src", type="directory"))
    one = await files.find("default", find("m", limit=1))
    hidden = await files.find("default", find("key"))

    assert [entry.path for entry in found.entries] == ["src/main.py", "src/maintenance.md"]
    assert [entry.path for entry in scattered.entries] == ["src/main.py"]
    assert [(entry.path, entry.type) for entry in directories.entries] == [("src", "directory")]
    assert (len(one.entries), one.truncated) == (1, True)
    assert hidden.entries == ()
