"""Tenants' own clients over NATS: what their keys let them do, and in whose name it is written."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import nats
import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import TimeoutError as NatsTimeoutError

from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.jetstream.streams.client_consumers import PENDING_MAX
from fairlead_schema import subjects
from fairlead_schema.errors import InternalFailure, ServiceUnavailable
from fairlead_schema.identity.principal import LOCAL
from fairlead_schema.identity.verbs import VERBS
from fairlead_schema.subjects import BY_HEADER, Address
from fairlead_testing.stack import TIMEOUT_S, Stack, stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

ALWAYS_REFUSED: Final = "call permission.approve instead"
CONFIG: Final = """
[tools]
probes = true

[[agent.build.permissions]]
action = "*"
resource = "*"
effect = "allow"

[[agent.build.permissions]]
action = "probe_pure"
resource = "*"
effect = "ask"
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """A stack whose model must ask before it calls the probe tool."""
    place: Path = tmp_path_factory.mktemp("stack")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    config = place / "fairlead.toml"
    config.write_text(f'{CONFIG}\n[location]\ndefault = "{place}"\n')
    async with stack(place / "state", config=config) as running:
        yield running


@asynccontextmanager
async def local_client(up: Stack) -> AsyncIterator[Client]:
    """A client that has only its key file, as README shows."""
    local = up.up.local_client
    client = await nats.connect(
        local.url, nkeys_seed=local.nkey_file, inbox_prefix=local.inbox_prefix
    )
    try:
        yield client
    finally:
        await client.close()


async def call(
    client: Client, verb: str, body: object, headers: dict[str, str] | None = None
) -> dict[str, Any]:
    subject = subjects.as_principal(LOCAL.tenant, LOCAL.name, verb)
    answer = await client.request(subject, json.dumps(body).encode(), 20, headers=headers)
    parsed: dict[str, Any] = json.loads(answer.data)
    return parsed


async def test_a_client_drives_a_session_and_every_commit_names_it(up: Stack) -> None:
    """B9: the subject names the principal; a header that names another is ignored."""
    async with local_client(up) as client:
        forged = {BY_HEADER: "service:somebody-else"}
        created = await call(client, "session.create", {}, forged)
        session = created["data"]["id"]
        body = {"sessionID": session, "prompt": {"text": "hello"}}
        assert (await call(client, "session.prompt", body, forged))["data"]["sessionID"] == session

    log = await up.wait_until_rested(session)
    callers = {recorded.event.type: recorded.by for recorded in log}
    assert (callers["session.created"], callers["prompt.admitted"]) == ("local", "local")
    assert callers["step.ended"] is None


async def test_the_answer_always_needs_the_verb_with_its_own_scope(up: Stack) -> None:
    """B9: a client that may answer asks cannot save an approval with the same verb."""
    async with local_client(up) as client:
        session = (await call(client, "session.create", {}))["data"]["id"]
        text = """[[sim: tool=probe_pure args='{"key": "k"}' ; answer=done]]"""
        await call(client, "session.prompt", {"sessionID": session, "prompt": {"text": text}})
        await up.until(session, "permission.asked")
        (request,) = (await call(client, "permission.list", {"sessionID": session}))["data"][
            "requests"
        ]
        reply = {"sessionID": session, "requestID": request["id"], "reply": "always"}

        refused = await call(client, "permission.reply", reply)
        approved = await call(client, "permission.approve", reply)

    assert refused["error"]["_tag"] == "ForbiddenError"
    assert "approval:save" in refused["error"]["message"]
    assert "data" in approved
    (replied,) = [
        recorded
        for recorded in await up.wait_until_rested(session)
        if recorded.event.type == "permission.replied"
    ]
    assert replied.by == "local"
    lines = [
        json.loads(line)
        for line in up.up.log_path("ingest").read_text().splitlines()
        if ('"fairlead.audit"' in line and request["id"] in line) or ALWAYS_REFUSED in line
    ]
    outcomes = [(line["action"], line["outcome"], line["principal"]) for line in lines]
    assert outcomes == [
        ("permission.reply", "refused", "local"),
        ("permission.reply", "allowed", "local"),
    ]


async def test_a_client_reads_its_part_of_the_feed_from_its_own_consumer(up: Stack) -> None:
    """B9: the platform makes the consumer with the filter; the client pulls and acknowledges."""
    async with local_client(up) as client:
        opened = (await call(client, "feed.open", {"after": 0}))["data"]
        feed = await client.jetstream().pull_subscribe_bind(
            consumer=opened["consumer"], stream=opened["stream"]
        )
        session = (await call(client, "session.create", {}))["data"]["id"]
        async with asyncio.timeout(TIMEOUT_S):
            seen: list[str] = []
            while not any(session in subject for subject in seen):
                for msg in await feed.fetch(10, timeout=5):
                    await msg.ack()
                    seen.append(msg.subject)
        again = (await call(client, "feed.open", {}))["data"]

    assert again == opened
    assert {subject.split(".")[2] for subject in seen} == {"default"}


async def test_a_client_that_opens_its_feed_again_and_again_has_one_consumer(up: Stack) -> None:
    """B9: consumers cost memory of the server, so that a principal cannot make more of them."""
    async with (
        local_client(up) as client,
        open_link(up.up.operator, name="test") as link,
    ):
        answers = await asyncio.gather(
            *(call(client, "feed.open", {"after": number}) for number in range(20)),
            *(call(client, "feed.open", {}) for _ in range(20)),
        )
        names = (await link.api("CONSUMER.NAMES.EVENTS"))["consumers"]

    assert [name for name in names if name.startswith("feed-")] == ["feed-default-local"]
    assert all("data" in answer or "_tag" in answer["error"] for answer in answers)
    assert not any(answer.get("error", {}).get("_tag") == InternalFailure.tag for answer in answers)


async def test_a_client_that_never_acknowledges_its_feed_stops_nobody_else(up: Stack) -> None:
    """It gets as much as may wait for an acknowledgement. Turns and other readers go on."""
    subject = "fairlead.event.default.ses_flood.note"
    async with local_client(up) as client, open_link(up.up.operator, name="test") as link:
        last = (await link.api("STREAM.INFO.EVENTS"))["state"]["last_seq"]
        opened = (await call(client, "feed.open", {"after": last}))["data"]
        feed = await client.jetstream().pull_subscribe_bind(
            consumer=opened["consumer"], stream=opened["stream"]
        )
        for _ in range(PENDING_MAX + 100):
            await link.send(subject, b"{}")
        taken: list[Msg] = []
        async with asyncio.timeout(TIMEOUT_S):
            while len(taken) < PENDING_MAX:
                taken += await feed.fetch(PENDING_MAX - len(taken), timeout=5)
            with pytest.raises(NatsTimeoutError):
                await feed.fetch(1, timeout=0.5)

            await up.answer_another_session()
            found, _ = await link.read_subject("EVENTS", subject, first=last + 1, batch=2_000)
            assert len(found) == PENDING_MAX + 100, "another reader gets everything"

            await taken[0].ack()
            assert len(await feed.fetch(1, timeout=5)) == 1, "an acknowledgement makes room for one"


async def test_a_published_prompt_gets_a_receipt_that_its_sender_may_read(up: Stack) -> None:
    """B9: publish and forget, then read the one receipt whose subject the request names."""
    async with local_client(up) as client:
        session = (await call(client, "session.create", {}))["data"]["id"]
        at, message_id = Address("default", session), "msg_published_by_a_client"
        receipts = await client.subscribe(subjects.receipt(at, message_id))
        await client.flush()
        prompt = {"id": message_id, "prompt": {"text": "hello"}}
        await client.jetstream().publish(subjects.prompt(at), json.dumps(prompt).encode())

        heard = await receipts.next_msg(timeout=TIMEOUT_S)
        read = await client.request(
            f"$JS.API.DIRECT.GET.RECEIPTS.{subjects.receipt(at, message_id)}", b"", 10
        )

    assert json.loads(heard.data)["data"]["id"] == message_id
    assert read.data == heard.data


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"sessionID":' * 10_000,
        b'{"after":' + b"9" * 4_000 + b"}",
        b'{"after":18446744073709551615,"sessionID":"ses_x"}',
        b'{"after":NaN,"sessionID":1e999}',
        b'{"sessionID":"\\ud800","requestID":"\\u0000","id":"a.b.>"}',
        b'{"sessionID":"fairlead.log.>","name":"*","prompt":{"text":"x"}}',
    ],
    ids=range(12),
)
async def test_no_body_breaks_a_verb_or_stays_without_an_answer(up: Stack, body: bytes) -> None:
    """B9: every verb of the own door answers hostile bytes with a typed refusal, never a defect."""
    verbs = [verb for verb, rule in VERBS.items() if rule.scope is not None]
    async with local_client(up) as client:
        answers = await asyncio.gather(
            *(
                client.request(subjects.as_principal(LOCAL.tenant, LOCAL.name, verb), body, 20)
                for verb in verbs
            )
        )

    tags = {
        verb: json.loads(answer.data).get("error", {}).get("_tag")
        for verb, answer in zip(verbs, answers, strict=True)
    }
    defects = {InternalFailure.tag, ServiceUnavailable.tag}
    assert {verb: tag for verb, tag in tags.items() if tag in defects} == {}
