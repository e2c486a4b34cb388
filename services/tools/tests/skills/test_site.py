"""Skills on the web: an untrusted index, and a cache that never holds half a skill."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from fairlead_schema.context import ObserveContext, ObservedSource
from fairlead_schema.location import LocationRef
from fairlead_service.config.configuration import Config
from fairlead_testing.pages import Pages, serve_pages
from fairlead_tools.context.observe import Observer
from fairlead_tools.context.sources import skills
from fairlead_tools.context.sources.files import TextFiles
from fairlead_tools.context.web_pages import WebClient
from fairlead_tools.skills.site import (
    FILES_PARALLEL,
    SKILLS_PARALLEL,
    SkillEntry,
    SkillRefused,
    SkillSite,
    file_urls,
)


@pytest.fixture
def pages() -> Iterator[Pages]:
    with serve_pages() as server:
        yield server


@pytest.fixture
def site(pages: Pages, tmp_path: Path) -> SkillSite:
    return SkillSite(f"{pages.url}/s", tmp_path / "cache", WebClient(Config().context))


def publish_index(pages: Pages, *entries: dict[str, Any]) -> None:
    pages.said["/s/index.json"] = json.dumps({"skills": entries}).encode()


def entry(name: str = "a", version: str | None = "1", *files: str) -> dict[str, Any]:
    return {"name": name, "version": version, "files": files or ("SKILL.md", "ref/x.txt")}


def publish(pages: Pages, name: str = "a", text: str = "one") -> None:
    pages.said[f"/s/{name}/SKILL.md"] = f"---\ndescription: {text}\n---\n{text}".encode()
    pages.said[f"/s/{name}/ref/x.txt"] = text.encode()


def load_contents(site: SkillSite) -> dict[str, str]:
    return {skill.name: skill.content for skill in site.load(TextFiles(1000))}


async def test_an_index_is_downloaded_into_a_cache(pages: Pages, site: SkillSite) -> None:
    """M-18: each site has a directory with every file of its skills."""
    publish_index(pages, entry(), entry("b", "1", "b.md"))
    publish(pages)
    pages.said["/s/b/b.md"] = b"flat"

    await site.sync()

    assert load_contents(site) == {"a": "one", "b": "flat"}
    skill = next(skill_ for skill_ in site.load(TextFiles(1000)) if skill_.name == "a")
    assert skill.directory is not None
    assert (skill.directory / "ref" / "x.txt").read_text() == "one"


async def test_the_same_version_is_not_downloaded_again(pages: Pages, site: SkillSite) -> None:
    """M-21: only the index is fetched."""
    publish_index(pages, entry())
    publish(pages)
    await site.sync()
    pages.asked.clear()

    await site.sync()

    assert pages.asked == ["/s/index.json"]
    assert load_contents(site) == {"a": "one"}


async def test_a_new_version_replaces_the_whole_skill(pages: Pages, site: SkillSite) -> None:
    """M-21: unlisted files go, and a reader of the old version may finish."""
    publish_index(pages, entry())
    publish(pages)
    await site.sync()
    (before,) = site.load(TextFiles(1000))
    publish_index(pages, entry("a", "2", "SKILL.md"))
    publish(pages, text="two")

    await site.sync()

    (after,) = site.load(TextFiles(1000))
    assert (after.content, before.directory) == ("two", before.directory)
    assert after.directory is not None
    assert before.directory is not None
    assert [path.name for path in after.directory.iterdir()] == ["SKILL.md"]
    assert (before.directory / "ref" / "x.txt").exists()
    await site.sync()
    assert not before.directory.exists()


async def test_an_update_that_does_not_complete_changes_nothing(
    pages: Pages, site: SkillSite
) -> None:
    """M-21: no partial files stay."""
    publish_index(pages, entry())
    publish(pages)
    await site.sync()
    publish_index(pages, entry("a", "2"))
    publish(pages, text="two")
    pages.said["/s/a/ref/x.txt"] = 404

    await site.sync()

    assert load_contents(site) == {"a": "one"}
    publish(pages, text="two")
    await site.sync()
    assert load_contents(site) == {"a": "two"}


async def test_a_skill_that_is_no_longer_offered_is_gone(pages: Pages, site: SkillSite) -> None:
    """M-21: the index decides which skills exist."""
    publish_index(pages, entry(), entry("b"))
    publish(pages)
    publish(pages, "b")
    await site.sync()
    publish_index(pages, entry("b"))

    await site.sync()

    assert load_contents(site) == {"b": "one"}


async def test_without_a_version_every_look_downloads(pages: Pages, site: SkillSite) -> None:
    """M-18: without a version nobody knows whether the skill changed."""
    publish_index(pages, entry(version=None))
    for text in ("one", "two"):
        publish(pages, text=text)
        await site.sync()

    assert load_contents(site) == {"a": "two"}


@pytest.mark.parametrize("index", [404, 500, b"", b"[]", b'{"skills": 3}', b'{"skills": [{}]}'])
async def test_without_an_index_the_cache_stays_as_it_is(
    pages: Pages, site: SkillSite, index: bytes | int
) -> None:
    """M-22: no skill is added, and the cached ones stay."""
    pages.said["/s/index.json"] = index
    await site.sync()
    assert load_contents(site) == {}
    publish_index(pages, entry())
    publish(pages)
    await site.sync()
    pages.said["/s/index.json"] = index

    await site.sync()

    assert load_contents(site) == {"a": "one"}


async def test_a_failure_that_may_pass_is_tried_twice_more(pages: Pages, site: SkillSite) -> None:
    """M-22: a permanent failure is not retried."""
    pages.said["/s/index.json"] = 503
    await site.sync()
    assert len(pages.asked) == 3
    pages.said["/s/index.json"] = 403
    await site.sync()
    assert len(pages.asked) == 4


@pytest.mark.parametrize("name", ["", "..", ".", "a/b", "../a", "a\\b", "-a", "a\n", "x" * 65])
def test_an_unsafe_name_is_refused(name: str) -> None:
    """M-19: such a name would lead outside the cache."""
    with pytest.raises(SkillRefused):
        file_urls(SkillEntry(name=name, files=("SKILL.md",)), "http://site/s/")


@pytest.mark.parametrize(
    "file",
    [
        "../x",
        "a/../../x",
        "/etc/passwd",
        "a//b",
        "",
        ".",
        "..",
        "a\\b",
        "http://elsewhere/x",
        "//elsewhere/x",
        "a?b",
        "a#b",
        "a%2e%2e/b",
        "a\0b",
        "a\nb",
    ],
)
def test_an_unsafe_path_is_refused(file: str) -> None:
    """M-19: traversal, absolute paths and other sites are refused in any spelling."""
    with pytest.raises(SkillRefused):
        file_urls(SkillEntry(name="a", files=("SKILL.md", file)), "http://site/s/")


async def test_one_bad_skill_is_refused_before_any_download(pages: Pages, site: SkillSite) -> None:
    """M-19: the other skills are downloaded."""
    publish_index(pages, entry("bad", "1", "SKILL.md", "../../x"), entry())
    publish(pages)
    publish(pages, "bad")

    await site.sync()

    assert load_contents(site) == {"a": "one"}
    assert not [path for path in pages.asked if "bad" in path]


def test_a_skill_lists_its_own_file() -> None:
    """M-20: the file is SKILL.md or has the name of the skill."""
    assert file_urls(SkillEntry(name="a", files=("SKILL.md",)), "http://site/s/") == {
        "SKILL.md": "http://site/s/a/SKILL.md"
    }
    assert file_urls(SkillEntry(name="a", files=("a.md", ".x")), "http://site/s/")
    with pytest.raises(SkillRefused):
        file_urls(SkillEntry(name="a", files=("b.md",)), "http://site/s/")


async def test_downloads_run_side_by_side_within_bounds(pages: Pages, tmp_path: Path) -> None:
    """M-23: four skills and eight files load at a time."""
    active = peak = 0

    class CountingClient(WebClient):
        @override
        async def get(self, url: str) -> bytes:
            nonlocal active, peak
            active += 1
            peak = max(peak, active)
            await asyncio.sleep(0.005)
            active -= 1
            return pages.said["/s/index.json"] if url.endswith("json") else b"x"  # type: ignore[return-value]

    file_names = tuple(f"f{at}.txt" for at in range(9))
    publish_index(pages, *(entry(f"s{at}", "1", "SKILL.md", *file_names) for at in range(8)))

    await SkillSite("http://site/s", tmp_path, CountingClient(Config().context)).sync()

    assert (SKILLS_PARALLEL, FILES_PARALLEL) == (4, 8)
    assert peak == FILES_PARALLEL


async def test_an_observation_lists_the_skills_of_a_site(pages: Pages, tmp_path: Path) -> None:
    """M-13, M-18: the first observation waits for the site; an unreachable site adds no skills."""
    publish_index(pages, entry())
    publish(pages)
    config = Config.model_validate(
        {
            "context": {"global_file": None, "cache": str(tmp_path / "cache")},
            "skills": {
                "config_directory": None,
                "sources": [f"{pages.url}/s/", "http://127.0.0.1:9/"],
            },
            "location": {"roots": ["/"]},
        }
    )
    observer = Observer(config)

    sample = await observer.observe(ObserveContext(location=LocationRef(directory=str(tmp_path))))
    await observer.close()

    source = next(
        observation for observation in sample.observations if observation.key == skills.KEY
    )
    assert isinstance(source, ObservedSource)
    assert [name for name, _description in source.value] == ["a", "configure-fairlead"]
