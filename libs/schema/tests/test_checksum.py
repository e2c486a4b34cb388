"""The checksum of a commit: a changed word is noticed, and old readers ignore it."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead_schema.events import InputCancelled
from fairlead_schema.record import Commit, Recorded, decode, encode
from fairlead_schema.subjects import Address
from fairlead_schema.transfer.checksum import ChecksumState, add_checksum, check_checksum

AT = Address("default", "ses_1")
COMMIT = Commit("cmt_1", (Recorded("evt_1", 1, 1, InputCancelled(message_id="msg_alpha")),))
PAYLOAD = add_checksum(AT, encode(COMMIT))


def test_a_commit_with_its_checksum_reads_as_before() -> None:
    assert decode(PAYLOAD) == COMMIT
    assert check_checksum(AT, PAYLOAD) is ChecksumState.VALID


def test_a_commit_of_an_earlier_release_has_no_checksum() -> None:
    assert check_checksum(AT, encode(COMMIT)) is ChecksumState.ABSENT


def test_the_bytes_of_a_checksum_are_a_contract() -> None:
    assert PAYLOAD.startswith(b'{"sum":"c6408ff6","id":"cmt_1","events":[')


def test_a_commit_that_stands_in_another_session_is_noticed() -> None:
    assert check_checksum(Address("default", "ses_2"), PAYLOAD) is ChecksumState.WRONG
    assert check_checksum(Address("other", "ses_1"), PAYLOAD) is ChecksumState.WRONG


@given(st.integers(min_value=8, max_value=len(PAYLOAD) - 1), st.integers(0, 255))
def test_any_changed_byte_is_noticed(place: int, byte: int) -> None:
    """D17: `verify` notices a changed word."""
    changed = bytes((*PAYLOAD[:place], byte, *PAYLOAD[place + 1 :]))

    expected = ChecksumState.VALID if changed == PAYLOAD else ChecksumState.WRONG
    assert check_checksum(AT, changed) is expected
