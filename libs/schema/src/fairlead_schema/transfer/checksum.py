"""The checksum of a commit: the first field of its bytes, so that a changed word is noticed.

It covers every other byte and the address of the session. Readers that do not know it ignore it. It
proves nothing against a forger, who can compute it too.
"""

from enum import Enum
from typing import Final
from zlib import crc32

from fairlead_schema.subjects import Address

_BEGIN: Final = b'{"sum":"'
_END: Final = b'",'
_DIGITS: Final = 8
_DIGITS_END: Final = len(_BEGIN) + _DIGITS
_BODY: Final = _DIGITS_END + len(_END)


class ChecksumState(Enum):
    """What the checksum of a commit says."""

    VALID = "valid"
    WRONG = "wrong"
    ABSENT = "absent"
    """An earlier release wrote the commit."""


def add_checksum(at: Address, payload: bytes) -> bytes:
    """The bytes of a commit with their checksum."""
    body = payload[1:]
    return b"".join((_BEGIN, _checksum(at, body), _END, body))


def check_checksum(at: Address, payload: bytes) -> ChecksumState:
    """Whether the bytes of a commit are those that were written for this session."""
    if not payload.startswith(_BEGIN):
        return ChecksumState.ABSENT
    digits, body = payload[len(_BEGIN) : _DIGITS_END], memoryview(payload)[_BODY:]
    is_valid = payload[_DIGITS_END:_BODY] == _END and digits == _checksum(at, body)
    return ChecksumState.VALID if is_valid else ChecksumState.WRONG


def _checksum(at: Address, body: bytes | memoryview) -> bytes:
    return b"%08x" % crc32(body, crc32(f"{at.tenant}/{at.session_id}".encode()))
