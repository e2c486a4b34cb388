"""Paths lead inside the location, or outside with an approval, and nowhere else."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from fairlead_session.people.permission import Need
from fairlead_tools.builtin import apply_patch, edit, glob, grep, read, write
from fairlead_tools.files.path import PathRefused, check_permitted, external_needs, resolve
from fairlead_tools.registry.tool import Tool
from services.tools.tests.file_calls import (
    failure_of,
    required_permissions,
    run_call,
    text,
    try_call,
)

READ, WRITE = read.tool(), write.tool()
PATCH = "*** Begin Patch\n*** Update File: {}\n@@\n-a\n+b\n*** End Patch"
NAMED: list[tuple[Tool, str, dict[str, Any]]] = [
    (READ, "Unable to read", {}),
    (WRITE, "Unable to write", {"content": "x"}),
    (edit.tool(), "Unable to edit", {"oldString": "a", "newString": "b"}),
    (glob.tool(), "Unable to search", {"pattern": "*"}),
    (grep.tool(), "Unable to search", {"pattern": "a"}),
]


@pytest.fixture
def location(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/secret.txt").write_text("a secret")
    return tmp_path / "there"


@pytest.mark.parametrize("path", ["../there/secret.txt", "a/../../there/secret.txt", ".."])
@pytest.mark.parametrize(("tool", "message", "fields"), NAMED)
async def test_a_relative_path_that_climbs_out_is_refused_and_not_asked_for(
    location: Path, outside: Path, path: str, tool: Tool, message: str, fields: dict[str, Any]
) -> None:
    """L-01, L-65: every tool refuses such a path before it asks."""
    assert await failure_of(tool, location, path=path, **fields) == f"{message} {path}"
    assert (outside / "secret.txt").read_text() == "a secret"


async def test_a_patch_that_climbs_out_is_refused(location: Path, outside: Path) -> None:
    """L-01: the rule holds for each path of a patch."""
    message = await failure_of(
        apply_patch.tool(), location, patchText=PATCH.format("../there/secret.txt")
    )

    assert message == "Patch verification failed: unable to edit ../there/secret.txt"
    assert (outside / "secret.txt").read_text() == "a secret"


async def test_dots_that_stay_inside_are_followed(location: Path) -> None:
    """L-01: paths are relative to the location."""
    (location / "a.txt").write_text("hello")

    assert text(await run_call(READ, location, path="x/../a.txt")) == "hello"


async def test_an_absolute_path_inside_needs_no_more_than_a_relative_one(location: Path) -> None:
    """L-02, L-06: the only need is named relative to the location."""
    (location / "sub").mkdir()
    (location / "sub/a.txt").write_text("hello")

    needs = await required_permissions(READ, location, path=str(location / "sub/a.txt"))

    assert needs == (Need("read", ("sub/a.txt",), ("*",)),)


async def test_an_absolute_path_inside_a_linked_location_is_inside(location: Path) -> None:
    """L-02: both the path through the link and the real path are inside."""
    (location / "a.txt").write_text("hello")
    link = location.parent / "link"
    link.symlink_to(location)

    for path in (link / "a.txt", location / "a.txt"):
        needs = await required_permissions(READ, link, path=str(path))
        assert needs == (Need("read", ("a.txt",), ("*",)),)


async def test_a_path_outside_asks_for_its_directory_first(location: Path, outside: Path) -> None:
    """Q-08, L-03, L-06: the permission of the tool follows, on the canonical path."""
    target = outside / "new.txt"

    needs = await required_permissions(WRITE, location, path=str(target), content="x")

    assert needs[0] == Need("external_directory", (f"{outside}/*",), (f"{outside}/*",))
    assert [(need.action, need.resources) for need in needs[1:]] == [("edit", (str(target),))]
    await run_call(WRITE, location, path=str(target), content="x")
    assert target.read_text() == "x"


@pytest.mark.parametrize(("tool", "fields"), [(t, g) for t, m, g in NAMED if "search" in m])
async def test_a_search_outside_asks_too(
    location: Path, outside: Path, tool: Tool, fields: dict[str, Any]
) -> None:
    """L-65: containment and approval apply to searches too."""
    needs = await required_permissions(tool, location, path=str(outside), **fields)

    assert [need.action for need in needs] == ["external_directory", tool.name]
    assert needs[0].resources == (f"{outside}/*",)
    listing = text(await run_call(tool, location, path=str(outside), **fields))
    assert "secret.txt" in listing


def test_the_boundary_is_the_nearest_directory_that_exists(location: Path, outside: Path) -> None:
    """L-04: the boundary is canonical, whatever links the path has."""
    (location.parent / "link").symlink_to(outside)

    place = resolve(str(location), str(location.parent / "link/new/deeper/file.txt"))

    assert place.boundary == outside
    assert place.path == outside / "new/deeper/file.txt"


def test_a_directory_whose_name_is_a_wildcard_is_not_approved_for_always(location: Path) -> None:
    """L-03: the saved pattern would permit more than the person saw."""
    odd = location.parent / "a*b"
    odd.mkdir()

    (need,) = external_needs(resolve(str(location), str(odd / "x")))

    assert need.resources == (f"{odd}/*",)
    assert need.save == ()


@pytest.mark.parametrize(("tool", "message", "fields"), NAMED)
async def test_a_link_that_leads_out_is_refused(
    location: Path, outside: Path, tool: Tool, message: str, fields: dict[str, Any]
) -> None:
    """L-05: a relative or absolute path through the link is never taken as outside."""
    (location / "link").symlink_to(outside)
    for path in ("link/secret.txt", str(location / "link/secret.txt"), "link/new/x"):
        assert await failure_of(tool, location, path=path, **fields) == f"{message} {path}"

    assert os.listdir(outside) == ["secret.txt"]  # noqa: PTH208
    assert (outside / "secret.txt").read_text() == "a secret"


async def test_a_dangling_link_that_leads_out_creates_nothing(
    location: Path, outside: Path
) -> None:
    """L-05: the target of the link counts, whether it exists or not."""
    (location / "link").symlink_to(outside / "new.txt")

    await failure_of(WRITE, location, path="link", content="x")

    assert not (outside / "new.txt").exists()


async def test_a_link_that_stays_inside_is_followed_and_named_by_its_end(location: Path) -> None:
    """L-05, L-06: rules apply to the real file."""
    (location / "real").mkdir()
    (location / "real/a.txt").write_text("hello")
    (location / "link").symlink_to("real")

    assert (await required_permissions(READ, location, path="link/a.txt"))[0].resources == (
        "real/a.txt",
    )
    result = await run_call(READ, location, path="link/a.txt")
    assert result.structured["path"] == "real/a.txt"
    await run_call(WRITE, location, path="link/a.txt", content="new")
    assert (location / "real/a.txt").read_text() == "new"


@pytest.mark.parametrize(("tool", "message", "fields"), NAMED)
async def test_a_file_in_the_place_of_a_directory_is_an_error(
    location: Path, tool: Tool, message: str, fields: dict[str, Any]
) -> None:
    """L-07: nothing is created below the file."""
    (location / "file").write_text("x")

    error = await failure_of(tool, location, path="file/below.txt", **fields)

    assert error == f"{message} file/below.txt"


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800", "x" * 5000, "a/" * 3000, "~/../../x"])
@pytest.mark.parametrize(("tool", "message", "fields"), NAMED)
async def test_what_is_no_path_is_an_error_of_the_call(
    location: Path, path: str, tool: Tool, message: str, fields: dict[str, Any]
) -> None:
    """L-31: a typed failure, never a crash."""
    result = await try_call(tool, location, path=path, **fields)

    if tool.name in {"glob", "grep"} and path == "":
        return  # An empty path means the location itself.
    error = getattr(result, "message", "")
    assert error.startswith(message), result


@pytest.mark.parametrize("tool", [READ, WRITE])
async def test_a_link_exchanged_while_somebody_decides_opens_nothing(
    location: Path, outside: Path, tool: Tool
) -> None:
    """L-05: the run checks the path again, inside and outside."""
    (location / "dir").mkdir()
    (location / "dir/secret.txt").write_text("plain")

    def exchange() -> None:
        (location / "dir").rename(location / "was")
        (location / "dir").symlink_to(outside)

    fields: dict[str, Any] = {} if tool is READ else {"content": "mine"}
    result = await try_call(
        tool, location, while_deciding=exchange, path="dir/secret.txt", **fields
    )

    verb = "read" if tool is READ else "write"
    assert getattr(result, "message", None) == f"Unable to {verb} dir/secret.txt"
    assert (outside / "secret.txt").read_text() == "a secret"


async def test_a_link_turned_to_another_file_inside_is_not_what_was_permitted(
    location: Path,
) -> None:
    """L-05: the permission was for the first file."""
    (location / "plain").write_text("plain")
    (location / "key").write_text("key")
    (location / "link").symlink_to("plain")

    def turn() -> None:
        (location / "link").unlink()
        (location / "link").symlink_to("key")

    result = await try_call(READ, location, while_deciding=turn, path="link")

    assert getattr(result, "message", None) == "Unable to read link"


async def test_a_link_outside_turned_elsewhere_is_not_what_was_permitted(
    location: Path, outside: Path
) -> None:
    """L-03, L-04: the approval was for the directory that the link led to before."""
    other = location.parent / "other"
    other.mkdir()
    (other / "secret.txt").write_text("another")
    link = location.parent / "link"
    link.symlink_to(outside)

    def turn() -> None:
        link.unlink()
        link.symlink_to(other)

    path = str(link / "secret.txt")
    assert text(await run_call(READ, location, path=path)) == "a secret"
    result = await try_call(READ, location, while_deciding=turn, path=path)

    assert getattr(result, "message", None) == f"Unable to read {path}"


def test_without_a_record_a_path_outside_must_be_canonical(location: Path, outside: Path) -> None:
    """L-03: the person who approved a canonical path saw its real place."""
    (location.parent / "link").symlink_to(outside)

    check_permitted(resolve(str(location), str(outside / "secret.txt")), "read", None)
    with pytest.raises(PathRefused):
        check_permitted(
            resolve(str(location), str(location.parent / "link/secret.txt")), "read", None
        )


@pytest.mark.parametrize(("failures", "outcome"), [(1, "resolved"), (100, "refused")])
def test_a_link_that_is_replaced_while_it_is_followed_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, outcome: str
) -> None:
    """L-05: Python reads a link that is no link any more as an invalid argument."""
    (tmp_path / "file").write_text("x")
    real, left = os.path.realpath, iter(range(failures))

    def realpath(path: str, *, strict: bool = False) -> str:
        if not strict and next(left, None) is not None:
            raise OSError(errno.EINVAL, "Invalid argument", path)
        return real(path, strict=strict)

    monkeypatch.setattr(os.path, "realpath", realpath)

    if outcome == "refused":
        with pytest.raises(PathRefused, match="keeps changing"):
            resolve(str(tmp_path), "file")
    else:
        assert resolve(str(tmp_path), "file").root == tmp_path
