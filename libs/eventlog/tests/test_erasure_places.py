"""Where data of sessions and tenants is: no declared stream is forgotten."""

import re

from hypothesis import given
from hypothesis import strategies as st

from fairlead_eventlog.erasure.places import (
    OF_TENANTS,
    StoredPlace,
    logs_of_tenant,
    mentions_of_session,
    rest_of_session,
    rest_of_tenant,
    truth_of_session,
)
from fairlead_eventlog.streams import CHECKPOINTS, LOG_STATUS, MESSAGES, STREAMS
from fairlead_schema import subjects
from fairlead_schema.subjects import Address

AT = Address("acme", "ses_1")
# They hold nothing of one tenant: positions of shards, the level and the incarnation.
OF_NOBODY = {CHECKPOINTS.name, LOG_STATUS.name}


def matches(place: StoredPlace, subject: str) -> bool:
    """Whether a subject fits a place, as the server says it."""
    pattern = re.escape(place.subject).replace(r"\*", r"[^.]+").replace(">", ".+")
    return re.fullmatch(pattern, subject) is not None


def test_every_stream_that_holds_data_of_a_tenant_is_emptied() -> None:
    """A new stream needs a line in these lists, or a reason why it holds nothing of anybody."""
    covered = {place.stream for place in (*rest_of_tenant("acme"), *logs_of_tenant("acme"))}
    covered |= {place.stream for place in truth_of_session(AT)}
    covered |= {named.stream for named in mentions_of_session(AT)}

    assert covered | OF_NOBODY == {spec.name for spec in STREAMS}


def test_every_place_is_of_its_stream() -> None:
    """A pattern that no subject of the stream fits would remove nothing."""
    declared = {spec.name: spec.subjects for spec in STREAMS}
    for place in (*truth_of_session(AT), *rest_of_session(AT), *rest_of_tenant("acme")):
        examples = [place.subject.replace("*", "x").replace(">", end) for end in ("x", "x.x")]
        assert any(
            matches(StoredPlace(place.stream, subject), example)
            for subject in declared[place.stream]
            for example in examples
        ), place


NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)


@given(NAMES, NAMES, NAMES, NAMES)
def test_no_place_reaches_another_session_or_tenant(
    tenant: str, session: str, other_tenant: str, other_session: str
) -> None:
    """A purge of one never touches the data of another, whatever their names are."""
    at, other = Address(tenant, f"ses_{session}"), Address(other_tenant, f"ses_{other_session}")
    theirs = (
        subjects.log(other),
        subjects.event(other, "prompt.admitted"),
        subjects.prompt(other),
        subjects.wake(other),
        subjects.timer(other),
        subjects.timer_due(other),
        subjects.tool(other, "default"),
        subjects.receipt(other, "msg_1"),
        f"$O.fairlead-output.C.{other.tenant}.{other.session_id}.out.1-x",
        f"$KV.fairlead-snapshot.{other.tenant}.{other.session_id}",
    )
    for place in (*truth_of_session(at), *rest_of_session(at)):
        for subject in theirs:
            assert not matches(place, subject) or at == other
    for place in rest_of_tenant(tenant):
        for subject in theirs:
            assert not matches(place, subject) or tenant == other_tenant


def test_message_ids_stay_used_when_a_session_is_purged() -> None:
    """ADR 0012: only the purge of a whole tenant forgets them."""
    assert MESSAGES.name not in {place.stream for place in rest_of_session(AT)}
    assert MESSAGES.name in {place.stream for place in rest_of_tenant("acme")}
    assert all(f"{spec.subjects[0][:-1]}acme.>" for spec in OF_TENANTS)
