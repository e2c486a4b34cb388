"""Locations: which directories the configured roots open, once all links are followed."""

from pathlib import Path

import pytest

from fairlead_schema.location import LocationRef
from fairlead_service.config.configuration import Config, ConfigError, load
from fairlead_service.locations import LocationRefused, check_location, containing_root, locate


def refusal(roots: tuple[str, ...], directory: str) -> str | None:
    refused = check_location(roots, LocationRef(directory=directory))
    return None if refused is None else refused.message


@pytest.mark.parametrize(
    "directory", ["/", "/srv", "/srv/ws-2", "/srv/ws/..", "/srv/ws/../x", "//srv/ws2", "/srv/ws\0"]
)
def test_every_spelling_of_a_directory_outside_is_refused(directory: str) -> None:
    """B2: dots, double slashes, null characters and longer names lead to no other root."""
    message = refusal(("/srv/ws",), directory)

    assert message is not None
    assert "outside the configured roots: /srv/ws." in message


@pytest.mark.parametrize("directory", ["/srv/ws", "/srv/ws/", "/srv/ws/a/b", "/srv/./ws/a/.."])
def test_a_root_is_open_with_all_that_is_below_it(directory: str) -> None:
    assert refusal(("/srv/ws",), directory) is None


@pytest.mark.parametrize("directory", [".", "ws", "../srv/ws", "~", "~/ws"])
def test_a_relative_path_is_refused_whatever_the_roots_are(directory: str) -> None:
    """D17: each process would resolve it from another directory."""
    assert "is a relative path" in (refusal(("/",), directory) or "")


def test_narrower_roots_of_a_caller_are_checked_after_those_of_the_tenant() -> None:
    """B2: a caller may have fewer directories than its tenant, never more."""
    tenant, own = ("/srv/acme",), ("/srv/acme/docs", "/srv/rival")

    def both(directory: str) -> bool:
        return refusal(tenant, directory) is None and refusal(own, directory) is None

    assert both("/srv/acme/docs/a")
    assert not both("/srv/acme/code")
    assert not both("/srv/rival")


def test_a_link_counts_as_the_place_that_it_leads_to_now(tmp_path: Path) -> None:
    """B2: the answer changes when the link does."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "real").mkdir(parents=True)
    outside.mkdir()
    link = root / "link"
    link.symlink_to(root / "real")
    assert refusal((str(root),), str(link)) is None

    link.unlink()
    link.symlink_to(outside)

    assert refusal((str(root),), str(link)) is not None
    assert refusal((str(root),), str(link / "below" / "missing")) is not None


def test_a_root_that_is_a_link_opens_the_directory_behind_it(tmp_path: Path) -> None:
    (tmp_path / "disk" / "ws").mkdir(parents=True)
    (tmp_path / "ws").symlink_to(tmp_path / "disk" / "ws")

    assert refusal((str(tmp_path / "ws"),), str(tmp_path / "disk" / "ws" / "a")) is None
    assert refusal((str(tmp_path / "ws"),), str(tmp_path / "disk")) is not None


def test_a_location_is_named_with_its_links_followed(tmp_path: Path) -> None:
    """B2: who uses the directory later can see whether it is still the same."""
    (tmp_path / "ws/project").mkdir(parents=True)
    (tmp_path / "ws/link").symlink_to(tmp_path / "ws/project")
    (tmp_path / "ws/out").symlink_to("/etc")
    roots = (str(tmp_path / "ws"),)

    def at(name: str) -> LocationRefused | str:
        return locate(roots, LocationRef(directory=str(tmp_path / "ws" / name)))

    assert at("link") == str(tmp_path / "ws/project")
    assert isinstance(at("out"), LocationRefused)


def test_the_innermost_of_nested_roots_holds_a_directory() -> None:
    """B15: nothing above that root is read for a session in it."""
    assert containing_root(("/srv", "/srv/ws", "/"), "/srv/ws/a") == "/srv/ws"
    assert containing_root(("/srv",), "/etc") is None


@pytest.mark.parametrize("key", ["roots", "default"])
def test_a_relative_root_is_a_mistake_of_the_configuration(tmp_path: Path, key: str) -> None:
    value = '["ws"]' if key == "roots" else '"ws"'
    file = tmp_path / "fairlead.toml"
    file.write_text(f"[location]\n{key} = {value}\n")

    with pytest.raises(ConfigError, match=rf"location\.{key}.*'ws' is no absolute path"):
        load(file, {})


def test_the_roots_of_a_tenant_replace_those_for_all() -> None:
    config = Config.model_validate(
        {
            "location": {"roots": ["/srv/all"], "default": "/srv/all/main"},
            "tenant": {"acme": {"location": {"roots": ["/srv/acme"]}}, "other": {}},
        }
    )

    assert config.roots("acme") == ("/srv/acme",)
    assert config.roots("other") == config.roots("unknown") == ("/srv/all",)
    assert config.default_location("acme") == "/srv/all/main"
