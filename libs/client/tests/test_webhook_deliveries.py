"""What a receiver of webhooks verifies, as web frameworks hand it over."""

import base64

import pytest

from fairlead_client import SignatureInvalid, verify_webhook
from fairlead_schema.webhooks.signature import signed_headers

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
OTHER = "whsec_" + base64.b64encode(b"o" * 32).decode()
NOW = 1_767_225_600
BODY = '{"fairleadevent": "asked", "data": {"text": "größer"}}'
HEADERS = signed_headers([SECRET], "dlv_1", NOW, BODY.encode())


@pytest.mark.parametrize("body", [BODY, BODY.encode(), bytearray(BODY.encode())])
def test_a_body_counts_as_bytes_and_as_text(body: bytes | str) -> None:
    delivery = verify_webhook(SECRET, HEADERS, body, now_s=NOW)

    assert (delivery.id, delivery.kind) == ("dlv_1", "asked")
    with pytest.raises(SignatureInvalid):
        verify_webhook(OTHER, HEADERS, body, now_s=NOW)


def test_several_secrets_and_several_signatures_need_one_pair() -> None:
    both = signed_headers([OTHER, SECRET], "dlv_1", NOW, BODY.encode())

    for secrets in ([SECRET], [OTHER], {SECRET, OTHER}, iter((OTHER,))):
        assert verify_webhook(secrets, both, BODY, now_s=NOW).id == "dlv_1"
    unknown = {**HEADERS, "webhook-signature": f"v1a,xxxx v2,yyyy {HEADERS['webhook-signature']}"}
    assert verify_webhook(SECRET, unknown, BODY, now_s=NOW).id == "dlv_1"


@pytest.mark.parametrize("secrets", [(), "", "whsec_", ("",)])
def test_no_secret_is_a_mistake_of_the_receiver_and_not_of_the_sender(
    secrets: str | tuple[str, ...],
) -> None:
    """An empty setting would refuse every delivery, and nobody would know why."""
    with pytest.raises(ValueError, match="secret") as raised:
        verify_webhook(secrets, HEADERS, BODY, now_s=NOW)
    assert not isinstance(raised.value, SignatureInvalid)


def test_a_text_that_no_bytes_have_is_refused() -> None:
    with pytest.raises(SignatureInvalid):
        verify_webhook(SECRET, HEADERS, "\udce9", now_s=NOW)
