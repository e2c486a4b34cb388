"""Minted ids: a prefix, an order, and a seal."""

import os
from collections.abc import Callable

import pytest
from pydantic import TypeAdapter

from fairlead_schema.ids import (
    AttemptId,
    CommitId,
    EventId,
    MessageId,
    RunnerId,
    SessionId,
    WorkerId,
    is_minted,
)
from fairlead_service import ids

MINTS = [
    (ids.session_id, "ses_", SessionId),
    (ids.message_id, "msg_", MessageId),
    (ids.event_id, "evt_", EventId),
    (ids.commit_id, "cmt_", CommitId),
    (ids.attempt_id, "att_", AttemptId),
    (ids.runner_id, "run_", RunnerId),
    (ids.worker_id, "wkr_", WorkerId),
]


@pytest.mark.parametrize(("mint", "prefix", "kind"), MINTS)
def test_an_id_says_its_kind_and_fits_its_contract(
    mint: Callable[[], str], prefix: str, kind: type[str]
) -> None:
    """P-31: a prefix, 12 hex characters, 14 of base 62."""
    id_ = mint()

    assert id_.startswith(prefix)
    assert len(id_) == len(prefix) + 26
    int(id_[4:16], 16)
    assert TypeAdapter(kind).validate_python(id_) == id_


@pytest.mark.parametrize("mint", [mint for mint, _prefix, _kind in MINTS])
def test_every_minted_id_bears_the_seal(mint: Callable[[], str]) -> None:
    """A-18: the seal tells a minted id from a caller's."""
    assert all(is_minted(mint()) for _ in range(50))


@pytest.mark.parametrize("id_", ["msg_1", "msg_", "", "msg_0123456789abABCDEFGHIJKLMN"])
def test_a_callers_id_bears_no_seal(id_: str) -> None:
    """A-18: neither short ones nor ones that look alike."""
    assert not is_minted(id_)


def test_a_changed_id_loses_its_seal() -> None:
    """A-18: the seal covers every character before it."""
    id_ = ids.message_id()
    other = "0" if id_[6] != "0" else "1"

    assert not is_minted(id_[:6] + other + id_[7:])


def test_ids_sort_by_creation() -> None:
    """P-31: however many are minted within a millisecond."""
    minted = [ids.event_id()[:16] for _ in range(10_000)]

    assert minted == sorted(minted)


def test_newer_sessions_sort_first() -> None:
    """P-31: a session's order is reversed."""
    minted = [ids.session_id()[:16] for _ in range(10_000)]

    assert minted == sorted(minted, reverse=True)


def test_ids_do_not_repeat() -> None:
    """H-04: randomness makes them unique."""
    assert len({ids.message_id() for _ in range(10_000)}) == 10_000


def test_a_copy_of_a_process_mints_ids_of_its_own() -> None:
    """The services of a local stack are forks of one process."""
    ids.event_id()  # There is randomness left for the next ones.
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, ids.event_id().encode())
        os._exit(0)
    os.waitpid(child, 0)

    theirs = os.read(reader, 100).decode()

    noise = slice(16, 26)
    assert is_minted(theirs)
    assert theirs[noise] != ids.event_id()[noise]
