"""Signatures of deliveries: only the holder of a secret makes them, and none fits anything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_schema.webhooks import signature
from fairlead_schema.webhooks.signature import (
    SIGNATURE_HEADER,
    TIME_HEADER,
    SignatureInvalid,
    secret_id,
    secret_text,
    sign,
    signed_headers,
    verify,
)

KEYS = st.binary(min_size=24, max_size=64).map(secret_text)
NOW = 1_767_225_600
SECRET = secret_text(b"k" * 32)


@given(KEYS, KEYS, st.text(min_size=1), st.binary())
def test_every_secret_in_force_verifies_and_no_other_one(
    secret: str, other: str, id_: str, body: bytes
) -> None:
    headers = signed_headers([secret], id_, NOW, body)

    assert verify([secret, other], headers, body, now_s=NOW) == id_
    if secret != other:
        with pytest.raises(SignatureInvalid, match="no signature fits"):
            verify([other], headers, body, now_s=NOW)
        both = signed_headers([other, secret], id_, NOW, body)
        assert verify([secret], both, body, now_s=NOW) == id_


@given(KEYS, st.binary(), st.binary())
def test_a_changed_body_id_or_time_fits_no_signature(
    secret: str, body: bytes, other: bytes
) -> None:
    headers = signed_headers([secret], "dlv_1", NOW, body)

    if other != body:
        with pytest.raises(SignatureInvalid):
            verify([secret], headers, other, now_s=NOW)
    for change in ({"webhook-id": "dlv_2"}, {TIME_HEADER: str(NOW + 1)}):
        with pytest.raises(SignatureInvalid):
            verify([secret], {**headers, **change}, body, now_s=NOW)


@pytest.mark.parametrize("age_s", [-301, 301, 10_000_000])
def test_an_old_request_and_one_of_the_future_are_refused(age_s: int) -> None:
    headers = signed_headers([SECRET], "dlv_1", NOW, b"{}")

    assert verify([SECRET], headers, b"{}", now_s=NOW + 300) == "dlv_1"
    with pytest.raises(SignatureInvalid, match="old"):
        verify([SECRET], headers, b"{}", now_s=NOW + age_s)
    assert verify([SECRET], headers, b"{}", now_s=NOW + age_s, tolerance_s=1e9) == "dlv_1"


@pytest.mark.parametrize("header", ["webhook-id", TIME_HEADER, SIGNATURE_HEADER])
def test_a_missing_or_malformed_header_is_named(header: str) -> None:
    headers = signed_headers([SECRET], "dlv_1", NOW, b"{}")

    with pytest.raises(SignatureInvalid, match=header):
        verify([SECRET], {**headers, header: ""}, b"{}", now_s=NOW)
    with pytest.raises(SignatureInvalid):
        verify([SECRET], {**headers, TIME_HEADER: "now"}, b"{}", now_s=NOW)
    capitals = {name.title(): value for name, value in headers.items()}
    assert verify([SECRET], capitals, b"{}", now_s=NOW) == "dlv_1"


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_short", "whsec_" + "!" * 40])
def test_a_text_that_is_no_secret_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="secret"):
        sign(text, "dlv_1", NOW, b"")


def test_the_id_of_a_secret_does_not_show_it() -> None:
    assert secret_id(SECRET) not in SECRET
    assert len(secret_id(SECRET)) == 12


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("webhook-timestamp", "9" * 5_000),
        ("webhook-signature", "v1,\udce9"),
        ("webhook-id", "dlv_\udce9"),
    ],
)
def test_headers_that_nobody_signs_are_refused_and_do_no_harm(header: str, value: str) -> None:
    headers = {**signed_headers([SECRET], "dlv_1", 1_000, b"{}"), header: value}
    with pytest.raises(SignatureInvalid):
        verify([SECRET], headers, b"{}", now_s=1_000)


def test_the_body_is_signed_once_for_each_secret_whatever_the_header_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Anybody may send a header with thousands of signatures. Each would cost a pass over the body."""
    passes: list[str] = []

    def count(secret: str, delivery_id: str, time_s: int, body: bytes) -> str:
        passes.append(secret)
        return sign(secret, delivery_id, time_s, body)

    headers = signed_headers([SECRET], "dlv_1", 1_000, b"{}")
    headers["webhook-signature"] = f"{'v1,x ' * 5_000}{headers['webhook-signature']}"
    monkeypatch.setattr(signature, "sign", count)

    assert verify([SECRET], headers, b"{}", now_s=1_000) == "dlv_1"
    assert passes == [SECRET]
