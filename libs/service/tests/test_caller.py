"""Who the caller of a request is: the subject of a tenant's own client, else a service's header."""

import pytest

from fairlead_schema import subjects
from fairlead_schema.errors import InvalidRequest
from fairlead_schema.subjects import BY_HEADER, KEY_HEADER
from fairlead_service.rpc.caller import by_own_client, caller_of, current_caller, current_key

OWN = subjects.as_principal("acme", "key:one", "session.get")
SERVICE = subjects.api("acme", "session.get")


def test_the_subject_of_an_own_client_names_the_caller_and_its_header_is_ignored() -> None:
    """B9: a header proves nothing, so it cannot lend another name."""
    with caller_of(OWN, {BY_HEADER: "key:another"}):
        assert (current_caller(), by_own_client()) == ("key:one", True)

    assert (current_caller(), by_own_client()) == (None, False)


def test_a_service_names_the_caller_in_a_header_or_acts_for_itself() -> None:
    with caller_of(SERVICE, {BY_HEADER: "key:another"}):
        assert (current_caller(), by_own_client()) == ("key:another", False)
    with caller_of(SERVICE, None):
        assert (current_caller(), by_own_client()) == (None, False)


@pytest.mark.parametrize("subject", [OWN, SERVICE])
def test_every_caller_may_name_a_key_for_one_request(subject: str) -> None:
    with caller_of(subject, {KEY_HEADER: "one"}):
        assert current_key() == "one"
    assert current_key() is None


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_an_empty_or_long_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidRequest, match="255"), caller_of(SERVICE, {KEY_HEADER: key}):
        pytest.fail("the request ran")


@pytest.mark.parametrize(
    ("subject", "headers"),
    [(SERVICE, {BY_HEADER: "root"}), (subjects.as_principal("acme", "root", "session.get"), None)],
)
def test_a_name_that_is_no_principal_is_refused(
    subject: str, headers: dict[str, str] | None
) -> None:
    with pytest.raises(InvalidRequest, match="principal"), caller_of(subject, headers):
        pytest.fail("the request ran")


@pytest.mark.parametrize(
    "subject", [SERVICE, "fairlead.log.as.1.ses_x", "fairlead", "other.as.acme.key:one.verb"]
)
def test_only_the_subjects_of_own_clients_name_a_principal(subject: str) -> None:
    assert subjects.principal_of(subject) is None
