"""Where the client finds its gateway and its token."""

import fcntl
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_client.local_stack import DEFAULT_URL, find_gateway

LOCAL = "http://127.0.0.1:8421"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The files of a stack, which runs only while somebody holds its lock."""
    (tmp_path / "lock").write_text("1")
    (tmp_path / "run.json").write_text(json.dumps({"http": LOCAL}))
    (tmp_path / "token").write_text("flk_local")
    return tmp_path


@pytest.fixture
def running(state: Path) -> Iterator[Path]:
    with (state / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield state


def test_a_running_stack_is_found_with_its_key(running: Path) -> None:
    assert find_gateway(None, None, state=running, environment={}) == (LOCAL, running / "token")


def test_the_files_of_a_dead_stack_count_for_nothing(state: Path) -> None:
    """Another program may listen on its port by now, and must not get the key."""
    assert find_gateway(None, None, state=state, environment={}) == (DEFAULT_URL, None)


def test_the_key_of_the_local_stack_goes_to_no_other_address(running: Path) -> None:
    there = find_gateway("https://fairlead.example/", None, state=running, environment={})

    assert there == ("https://fairlead.example", None)


def test_the_environment_counts_before_the_stack_and_arguments_before_it(running: Path) -> None:
    environment = {"FAIRLEAD_HTTP": "http://a.example", "FAIRLEAD_TOKEN": "one"}

    assert find_gateway(None, None, state=running, environment=environment) == (
        "http://a.example",
        "one",
    )
    assert find_gateway(LOCAL, "two", state=running, environment=environment) == (LOCAL, "two")


def test_without_any_stack_the_usual_address_is_tried(tmp_path: Path) -> None:
    assert find_gateway(None, None, state=tmp_path, environment={}) == (DEFAULT_URL, None)
