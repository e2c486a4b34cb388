"""The private directories of a worker: no tool reads or changes them, by any path."""

import os
from pathlib import Path

import pytest

from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_schema.subjects import Address
from fairlead_service.config.configuration import Config, load
from fairlead_service.config.context import ContextConfig
from fairlead_service.config.sections import ToolsConfig
from fairlead_tools import private_directory
from fairlead_tools.app import hide_private_directories
from fairlead_tools.builtin import builtins
from fairlead_tools.context.web_pages import WebClient, WebPages
from fairlead_tools.files.private import PRIVATE, PrivateDirectories
from fairlead_tools.private_directory import (
    PrivateDirectory,
    PrivateDirectoryUnsafe,
    open_private_directory,
)
from fairlead_tools.registry.tool import Tool
from fairlead_tools.session_files import remove_leftovers
from services.tools.tests.file_calls import failure_of, run_call, text

PLANTED = "planted by another session"


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PrivateDirectory:
    """A private directory inside the location, with a spool of another session."""
    monkeypatch.setattr(PRIVATE, "_access", {})
    config = Config(
        tools=ToolsConfig(spool_dir=str(tmp_path / "private"), sandbox="none"),
        context=ContextConfig(cache=str(tmp_path / "cache")),
    )
    directory = hide_private_directories(config)
    (directory.spools / "other").write_text(PLANTED)
    for name in ("pages", "skills"):
        (tmp_path / "cache" / name).mkdir(parents=True)
        (tmp_path / "cache" / name / "text").write_text(PLANTED)
    (tmp_path / "plain").write_text("plain\n")
    (tmp_path / "link").symlink_to(directory.spools)
    (tmp_path / "page").symlink_to(tmp_path / "cache/pages/text")
    return directory


def tool(name: str) -> Tool:
    config = Config(tools=ToolsConfig(sandbox="none"))
    return next(item for item in builtins(config) if item.name == name)


PATHS = (
    "private/spools/other",
    "./private/../private/spools/other",
    "link/other",
    "page",
    "cache/pages/text",
)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
async def test_no_file_tool_touches_a_private_directory(
    private: PrivateDirectory, path: str, *, absolute: bool
) -> None:
    """B6: neither the spools of other sessions nor the pages that become instructions."""
    location = private.root.parent
    target = str(location / path) if absolute else path
    patch = f"*** Begin Patch\n*** Delete File: {target}\n*** End Patch"

    messages = [
        await failure_of(tool("read"), location, path=target),
        await failure_of(tool("write"), location, path=target, content="injected"),
        await failure_of(tool("edit"), location, path=target, oldString=PLANTED, newString="x"),
        await failure_of(tool("apply_patch"), location, patchText=patch),
        await failure_of(tool("grep"), location, pattern="planted", path=target),
    ]

    assert not any(PLANTED in message for message in messages)
    assert (private.spools / "other").read_text() == PLANTED
    assert (location / "cache/pages/text").read_text() == PLANTED


async def test_searches_of_the_location_leave_private_directories_out(
    private: PrivateDirectory,
) -> None:
    """B6: also where the location contains them."""
    location = private.root.parent

    lines = text(await run_call(tool("grep"), location, pattern="pla"))
    files = text(await run_call(tool("glob"), location, pattern="**/*"))

    assert "plain" in lines
    assert "spools" not in lines + files
    assert "pages" not in lines + files


async def test_downloaded_skills_are_read_and_not_changed(private: PrivateDirectory) -> None:
    """B6: a skill is an instruction for later sessions."""
    location = private.root.parent

    assert PLANTED in text(await run_call(tool("read"), location, path="cache/skills/text"))
    await failure_of(tool("write"), location, path="cache/skills/text", content="injected")
    await failure_of(tool("write"), location, path="cache/skills/new", content="injected")


async def test_no_command_begins_in_a_private_directory(private: PrivateDirectory) -> None:
    """B6: whatever the permission says."""
    message = await failure_of(
        tool("bash"), private.root.parent, command="cat other", workdir="link"
    )

    assert message.startswith("No such working directory: link")


def test_only_the_owner_may_enter(tmp_path: Path) -> None:
    """B6: an existing directory with wider rights is narrowed."""
    (tmp_path / "private").mkdir(mode=0o777)

    directory = open_private_directory(str(tmp_path / "private"))
    session = directory.session_directory(Address("default", "ses_1"))

    for path in (directory.root, directory.spools, directory.sessions, session):
        assert path.stat().st_mode & 0o777 == 0o700


def test_a_directory_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B6: another user could have made it first in the shared temporary directory."""
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(PrivateDirectoryUnsafe, match="is not a directory: remove it"):
        open_private_directory(str(tmp_path / "link"))
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(PrivateDirectoryUnsafe, match="belongs to another user"):
        open_private_directory(str(tmp_path))


async def test_files_of_purged_and_old_sessions_are_removed(tmp_path: Path) -> None:
    """B6: a session that this process never served is judged by its age alone."""
    directory = open_private_directory(str(tmp_path / "private"))
    purged = directory.session_directory(Address("default", "ses_purged"))
    old, foreign = (directory.sessions / "default" / name for name in ("ses_old", "ses_foreign"))
    for path in (old, foreign):
        path.mkdir()
    os.utime(old, (0, 0))

    await remove_leftovers(directory, MemoryLog())

    assert not purged.exists()
    assert not old.exists()
    assert foreign.exists()
    assert private_directory.SESSION_AGE_S > 0


async def test_pages_are_stored_where_only_the_worker_reads(tmp_path: Path) -> None:
    """B6: the cache of instructions."""
    settings = ContextConfig(cache=str(tmp_path / "cache"))
    WebPages(settings, WebClient(settings))._store("https://example.com", "text")  # noqa: SLF001

    assert (tmp_path / "cache/pages").stat().st_mode & 0o777 == 0o700


def test_nothing_is_private_until_it_is_hidden(tmp_path: Path) -> None:
    directories = PrivateDirectories()
    assert not directories.is_hidden(tmp_path)

    directories.hide(tmp_path / "inner")

    assert directories.is_hidden(tmp_path / "inner/deep")
    assert not directories.is_hidden(tmp_path / "inner-not")
    assert directories.hidden == (tmp_path / "inner",)


def test_the_innermost_directory_decides(tmp_path: Path) -> None:
    """B6: the state of a stack is hidden, and the skills inside it can be read."""
    directories = PrivateDirectories()
    directories.hide(tmp_path, tmp_path / "cache/pages")
    directories.forbid_changes(tmp_path / "cache")

    assert directories.is_hidden(tmp_path / "token")
    assert not directories.is_hidden(tmp_path / "cache/skills/a")
    assert directories.is_read_only(tmp_path / "cache/skills/a")
    assert directories.is_hidden(tmp_path / "cache/pages/a")


async def test_configured_directories_are_closed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B6: for example the state of a stack, which may lie inside a location."""
    monkeypatch.setattr(PRIVATE, "_access", {})
    (tmp_path / ".fairlead").mkdir()
    (tmp_path / ".fairlead/token").write_text(PLANTED)
    env = {
        "FAIRLEAD_TOOLS_PRIVATE_DIRECTORIES": f"/nowhere:{tmp_path / '.fairlead'}",
        "FAIRLEAD_TOOLS_SPOOL_DIR": str(tmp_path / "private"),
    }

    hide_private_directories(load(None, env))

    assert await failure_of(tool("read"), tmp_path, path=".fairlead/token")
    assert PLANTED not in text(await run_call(tool("grep"), tmp_path, pattern="."))
