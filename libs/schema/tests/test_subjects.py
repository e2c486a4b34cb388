"""Subjects are a contract: the partition of a session never changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_schema import subjects
from fairlead_schema.subjects import PARTITIONS, SHARDS, Address

SESSION = "ses_3fa1c07be2d8Qm7ZxW4kRt9LpB"
AT = Address("acme", SESSION)

tokens = st.text(alphabet="ABCXYZabcxyz0189_-", min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("session_id", "partition"),
    [
        ("ses_3fa1c07be2d8Qm7ZxW4kRt9LpB", 54),
        ("ses_3fa1c0802211Hy2VbN8sJd5TgC", 27),
        ("ses_1", 27),
        ("ses-2", 21),
        ("sesA", 22),
        ("ses_" + "z" * 120, 2),
    ],
)
def test_the_partition_of_a_session_never_changes(session_id: str, partition: int) -> None:
    assert subjects.partition(session_id) == partition


@given(tokens)
def test_every_session_has_a_partition_and_a_shard(tail: str) -> None:
    session_id = "ses" + tail

    assert 0 <= subjects.partition(session_id) < PARTITIONS
    assert subjects.shard(session_id) == subjects.partition(session_id) % SHARDS


def test_each_shard_holds_the_same_number_of_partitions() -> None:
    assert PARTITIONS % SHARDS == 0


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (subjects.log(AT), f"fairlead.log.acme.54.{SESSION}"),
        (subjects.commit(AT), f"fairlead.commit.acme.54.{SESSION}"),
        (subjects.wake(AT), f"fairlead.wake.acme.54.{SESSION}"),
        (subjects.tool(AT, "east"), f"fairlead.tool.east.acme.{SESSION}"),
        (subjects.prompt(AT), f"fairlead.prompt.acme.{SESSION}"),
        (subjects.receipt(AT, "msg_1"), f"fairlead.receipt.acme.{SESSION}.msg_1"),
        (subjects.refusal(AT, "msg_1", 7), f"fairlead.receipt.acme.{SESSION}.msg_1.7"),
        (subjects.event(AT, "step.ended"), f"fairlead.event.acme.{SESSION}.step.ended"),
        (subjects.delta(AT), f"fairlead.delta.acme.{SESSION}"),
        (subjects.message("acme", "msg_1"), "fairlead.message.acme.msg_1"),
        (subjects.api("acme", "session.prompt"), "fairlead.api.acme.session.prompt"),
        (subjects.observe("east"), "fairlead.observe.east"),
        (subjects.ping("run_1"), "fairlead.ping.run_1"),
        (subjects.dead_letter("prompts"), "fairlead.dead.prompts"),
    ],
)
def test_subjects_are_a_contract(subject: str, expected: str) -> None:
    assert subject == expected


@given(tokens, tokens)
def test_log_commit_and_wake_subjects_give_back_their_session(tenant: str, tail: str) -> None:
    at = Address(tenant, "ses" + tail)

    assert subjects.address(subjects.log(at)) == at
    assert subjects.address(subjects.commit(at)) == at
    assert subjects.address(subjects.wake(at)) == at


@pytest.mark.parametrize(
    "subject", [subjects.prompt(AT), subjects.tool(AT, "east"), "other.log.acme.1.ses_1", ""]
)
def test_other_subjects_have_no_session_address(subject: str) -> None:
    with pytest.raises((AssertionError, ValueError)):
        subjects.address(subject)
