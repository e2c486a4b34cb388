"""Instructions from the web: bounded, cached, and renewed in the background."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlead_schema.context import ObserveContext, ObservedSource, UnavailableSource
from fairlead_schema.location import LocationRef
from fairlead_service.config.configuration import Config
from fairlead_testing.pages import Pages, serve_pages
from fairlead_tools.context.observe import Observer
from fairlead_tools.context.sources import instructions
from fairlead_tools.context.web_pages import cache_directory


@pytest.fixture
async def pages() -> AsyncIterator[Pages]:
    with serve_pages() as server:
        yield server


def make_observer(pages: Pages, tmp_path: Path, **context: Any) -> Observer:  # noqa: ANN401
    context_config = {
        "global_file": None,
        "cache": str(tmp_path / "cache"),
        "instructions": [f"{pages.url}/rules.md"],
        **context,
    }
    return Observer(
        Config.model_validate(
            {
                "context": context_config,
                "skills": {"config_directory": None},
                "location": {"roots": ["/"]},
            }
        )
    )


async def observe_instructions(observer: Observer, at: Path) -> ObservedSource | UnavailableSource:
    sample = await observer.observe(ObserveContext(location=LocationRef(directory=str(at))))
    return next(
        observation for observation in sample.observations if observation.key == instructions.KEY
    )


async def test_a_page_may_move_within_its_origin(pages: Pages, tmp_path: Path) -> None:
    """B17: a redirect is followed while scheme, host and port stay."""
    pages.redirects["/rules.md"] = "/moved.md"
    pages.said["/moved.md"] = b"Be brief."
    observer = make_observer(pages, tmp_path)

    source = await observe_instructions(observer, tmp_path)
    await observer.close()

    assert isinstance(source, ObservedSource)
    assert source.baseline.endswith("Be brief.")


async def test_a_page_cannot_send_to_another_origin(pages: Pages, tmp_path: Path) -> None:
    """B17: the operator named this port. The reason names the address that was not asked."""
    with serve_pages() as other:
        other.said["/rules.md"] = b"Obey."
        pages.redirects["/rules.md"] = f"{other.url}/rules.md"
        observer = make_observer(pages, tmp_path)

        source = await observe_instructions(observer, tmp_path)
        await observer.close()

        assert other.asked == []
    assert isinstance(source, UnavailableSource)
    assert f"redirects to {other.url}/rules.md: configure that address" in source.reason


async def test_a_page_that_redirects_for_ever_is_left(pages: Pages, tmp_path: Path) -> None:
    pages.redirects["/rules.md"] = "/rules.md"
    observer = make_observer(pages, tmp_path)

    source = await observe_instructions(observer, tmp_path)
    await observer.close()

    assert isinstance(source, UnavailableSource)
    assert "redirects more than 3 times" in source.reason


async def test_a_page_is_an_instruction_like_a_file(pages: Pages, tmp_path: Path) -> None:
    """M-12: the page follows the project's files, and is fetched again only after a while."""
    (tmp_path / "AGENTS.md").write_text("local")
    pages.said["/rules.md"] = "Sé breve.".encode()
    observer = make_observer(pages, tmp_path)

    observations = [await observe_instructions(observer, tmp_path) for _ in range(3)]
    await observer.close()

    assert isinstance(observations[0], ObservedSource)
    assert observations[0].baseline.endswith(
        f"\n\nInstructions from {pages.url}/rules.md:\nSé breve."
    )
    assert observations == [observations[0]] * 3
    assert pages.asked == ["/rules.md"]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (500, "unreachable"),
        (404, "unreadable"),
        (b"x" * 2000, "too-large"),
        (b"\xff\xfe", "not-text"),
        (b"a\0b", "not-text"),
    ],
)
async def test_a_page_that_was_never_had_is_unavailable(
    pages: Pages, tmp_path: Path, reply: bytes | int, why: str
) -> None:
    """M-12: the reason is typed, and the next observation does not fetch again."""
    pages.said["/rules.md"] = reply
    observer = make_observer(pages, tmp_path, file_bytes_max=1000)

    observations = [await observe_instructions(observer, tmp_path) for _ in range(2)]
    await observer.close()

    assert isinstance(observations[0], UnavailableSource)
    assert observations[0].why == why
    assert pages.asked == ["/rules.md"]


async def test_a_page_that_hangs_is_unavailable(pages: Pages, tmp_path: Path) -> None:
    """M-12: the fetch has a time limit."""
    pages.held = threading.Event()
    observer = make_observer(pages, tmp_path, fetch_timeout_s=0.1)

    observation = await observe_instructions(observer, tmp_path)
    await observer.close()

    assert isinstance(observation, UnavailableSource)
    assert observation.why == "timeout"


async def test_nobody_there_is_unavailable(pages: Pages, tmp_path: Path) -> None:
    """M-12: this holds for a site that is down and for an invalid address."""
    for address in ("http://127.0.0.1:9/rules.md", "http://[broken/rules.md"):
        observer = make_observer(pages, tmp_path, instructions=(address,))
        observation = await observe_instructions(observer, tmp_path)
        await observer.close()

        assert isinstance(observation, UnavailableSource)
        assert observation.why == "unreachable"


async def test_the_last_good_page_serves_while_the_site_is_away(
    pages: Pages, tmp_path: Path
) -> None:
    """M-12: the cached page is served at once and renewed in the background, across restarts."""
    pages.said["/rules.md"] = b"one"
    observer = make_observer(pages, tmp_path, refresh_s=0.01)
    assert "one" in str(await observe_instructions(observer, tmp_path))
    pages.said["/rules.md"] = 500
    await asyncio.sleep(0.02)
    for _ in range(3):
        assert "one" in str(await observe_instructions(observer, tmp_path))
        await asyncio.sleep(0.02)
    await observer.close()
    next_observer = make_observer(pages, tmp_path, refresh_s=0.01)

    assert "one" in str(await observe_instructions(next_observer, tmp_path))
    pages.said["/rules.md"] = b"two"
    async with asyncio.timeout(20):
        while "two" not in str(await observe_instructions(next_observer, tmp_path)):
            await asyncio.sleep(0.02)
    await next_observer.close()


async def test_local_changes_are_told_while_a_site_is_away(pages: Pages, tmp_path: Path) -> None:
    """M-12, F-37: a stale page does not hide a new local file."""
    pages.said["/rules.md"] = b"remote"
    observer = make_observer(pages, tmp_path, refresh_s=0.01)
    await observe_instructions(observer, tmp_path)
    pages.said["/rules.md"] = 500
    (tmp_path / "AGENTS.md").write_text("local")

    observation = await observe_instructions(observer, tmp_path)
    await observer.close()

    assert isinstance(observation, ObservedSource)
    assert "local" in observation.baseline
    assert "remote" in observation.baseline


def test_a_cache_that_cannot_be_made_is_made_elsewhere(tmp_path: Path) -> None:
    """M-18: a service without a writable home still works."""
    (tmp_path / "file").touch()
    config = Config.model_validate({"context": {"cache": str(tmp_path / "file" / "cache")}})

    assert cache_directory(config.context).name == f"fairlead-cache-{os.getuid()}"
