"""The verbs of webhooks and schedules: limits, wrong input, changes, and who answers for a schedule."""

from typing import Any

import pytest

from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.settings import IngestSettings
from fairlead_ingest.verbs.hooks import schedules, webhooks
from fairlead_ingest.verbs.hooks.purge import purge
from fairlead_schema.commands.hooks.schedules import ChangeSchedule, CreateSchedule, ListSchedules
from fairlead_schema.commands.hooks.webhooks import (
    ChangeWebhook,
    CreateWebhook,
    ListWebhooks,
    PurgeHooks,
    WebhookChanged,
)
from fairlead_schema.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    LimitReached,
    SessionNotFound,
)
from fairlead_schema.identity.restrictions import Restrictions
from fairlead_schema.subjects import RESTRICTIONS_HEADER
from fairlead_schema.webhooks.record import WebhookState
from fairlead_schema.webhooks.signature import secret_text
from fairlead_service import ids
from fairlead_service.config.configuration import Config
from fairlead_service.rpc.caller import caller_of
from fairlead_service.rpc.server import TenantParam

TENANT: TenantParam = "acme"
URL = "https://example.com/hook"
SUBJECT = "fairlead.api.acme.schedule.create"


@pytest.fixture
def context() -> CommandContext:
    limits = {"webhooks_max": 2, "schedules_max": 2}
    config = Config.model_validate({"hooks": limits, "location": {"default": "/srv"}})
    return CommandContext(memory_eventlog(), IngestSettings(config))


async def register(context: CommandContext, **fields: Any) -> WebhookChanged:  # noqa: ANN401
    command = CreateWebhook.model_validate({"url": URL, "events": ["rested"], **fields})
    return await webhooks.create(context, TENANT, command)


def plan(**fields: Any) -> CreateSchedule:  # noqa: ANN401
    return CreateSchedule.model_validate({"prompt": {"text": "hi"}, **fields})


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://example.com", "https"),
        ("https://127.0.0.1/x", "private address"),
        ("https://[::1]/x", "private address"),
        ("https://169.254.169.254/latest", "private address"),
        ("https://me:secret@example.com", "credentials"),
        ("ftp://example.com", "http"),
        ("https://", "no host"),
        ("https://exa mple.com", "space"),
    ],
)
async def test_a_url_to_which_nothing_may_be_sent_is_refused(
    context: CommandContext, url: str, reason: str
) -> None:
    with pytest.raises(InvalidRequest, match=reason) as refused:
        await register(context, url=url)

    assert refused.value.body.field == "url"


async def test_a_secret_is_shown_by_the_answer_that_made_it_alone(context: CommandContext) -> None:
    made = await register(context)
    own = await register(context, secret=secret_text(b"o" * 32))
    listed = await webhooks.list_(context, TENANT, ListWebhooks())

    assert made.secret is not None
    assert own.secret is None
    assert made.secret not in listed.model_dump_json()
    assert made.secret not in repr(made)
    with pytest.raises(LimitReached, match="2 webhooks"):
        await register(context)
    with pytest.raises(LimitReached):
        await register(context, id="whk_another")


async def test_an_exact_retry_gets_the_webhook_and_the_secret_of_the_first_try(
    context: CommandContext,
) -> None:
    """The caller may have lost the answer. At the limit a retry is no further webhook."""
    first = await register(context, id="whk_own")
    await register(context)
    again = await register(context, id="whk_own")

    assert again == first
    assert again.secret is not None
    for other in ({"url": f"{URL}/2"}, {"events": ["asked"]}, {"secret": secret_text(b"x" * 32)}):
        with pytest.raises(Conflict):
            await register(context, id="whk_own", **other)
    await webhooks.change(context, TENANT, ChangeWebhook(id="whk_own", paused=True))
    with pytest.raises(Conflict):
        await register(context, id="whk_own")


async def test_an_exact_retry_with_a_secret_of_the_caller_shows_no_secret(
    context: CommandContext,
) -> None:
    secret = secret_text(b"x" * 32)
    first = await register(context, id="whk_own", secret=secret)
    again = await register(context, id="whk_own", secret=secret)

    assert again == first
    assert again.secret is None


async def test_secrets_are_added_and_removed_but_one_stays(context: CommandContext) -> None:
    made = await register(context)
    first = made.webhook.secrets[0].id

    async def change(**fields: Any) -> WebhookChanged:  # noqa: ANN401
        command = ChangeWebhook.model_validate({"id": made.webhook.id, **fields})
        return await webhooks.change(context, TENANT, command)

    with pytest.raises(InvalidRequest, match="One secret stays"):
        await change(removeSecrets=[first])
    for _ in range(2):
        await change(addSecret=True)
    changed = await change(addSecret=True)
    assert len(changed.webhook.secrets) == 4
    with pytest.raises(InvalidRequest, match="at most 4"):
        await change(addSecret=True)
    swapped = await change(addSecret=True, removeSecrets=[first])
    assert first not in {secret.id for secret in swapped.webhook.secrets}


async def test_any_change_takes_back_that_a_receiver_was_gone(context: CommandContext) -> None:
    made = await register(context)
    id_ = made.webhook.id
    state = WebhookState(gone_since=1, gone_change=made.webhook.changed, reason="410")
    value = state.model_dump_json(by_alias=True, exclude_none=True).encode()
    await context.eventlog.hook_states.put(TENANT, id_, value)

    [shown] = (await webhooks.list_(context, TENANT, ListWebhooks())).webhooks
    assert (shown.status, shown.reason) == ("gone", "410")
    changed = await webhooks.change(context, TENANT, ChangeWebhook(id=id_, paused=False))
    assert changed.webhook.status == "active"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"cron": "61 * * * *"}, "cron"),
        ({"cron": "* * * * *", "timezone": "Mars/Olympus"}, "timezone"),
        ({"cron": "* * * * *", "agent": "nobody"}, "agent"),
        ({"cron": "* * * * *", "location": {"directory": "/elsewhere"}}, "location.directory"),
        ({"cron": "* * * * *", "prompt": {"text": " "}}, "prompt.text"),
        (
            {"cron": "* * * * *", "prompt": {"text": "hi", "files": [{"uri": "data:x"}]}},
            "prompt.files.0.uri",
        ),
    ],
)
async def test_a_schedule_that_could_never_run_is_refused(
    context: CommandContext, fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await schedules.create(context, TENANT, plan(**fields))

    assert refused.value.body.field == field


async def test_a_change_to_a_prompt_that_could_never_run_is_refused(
    context: CommandContext,
) -> None:
    made = await schedules.create(context, TENANT, plan(cron="0 9 * * *"))
    change = ChangeSchedule.model_validate({"id": made.id, "prompt": {"text": ""}})
    with pytest.raises(InvalidRequest, match="A prompt needs text or a file"):
        await schedules.change(context, TENANT, change)

    [kept] = (await schedules.list_(context, TENANT, ListSchedules())).schedules
    assert kept.prompt.text == "hi"


async def test_a_restricted_key_makes_no_schedule_that_its_sessions_may_not_be(
    context: CommandContext,
) -> None:
    limits = Restrictions(roots=("/nowhere",))
    with (
        caller_of(
            SUBJECT, {"Fairlead-By": "key:one", RESTRICTIONS_HEADER: limits.model_dump_json()}
        ),
        pytest.raises(Forbidden, match="/nowhere"),
    ):
        await schedules.create(context, TENANT, plan(cron="0 9 * * *"))


async def test_a_schedule_of_a_session_needs_the_session(context: CommandContext) -> None:
    with pytest.raises(SessionNotFound):
        await schedules.create(context, TENANT, plan(at=1, session="ses_nobody"))


async def test_an_id_is_used_once_and_schedules_are_limited(context: CommandContext) -> None:
    await schedules.create(context, TENANT, plan(cron="0 9 * * *", id="sch_one"))
    with pytest.raises(Conflict):
        await schedules.create(context, TENANT, plan(cron="0 8 * * *", id="sch_one"))
    await schedules.create(context, TENANT, plan(at=1))
    with pytest.raises(LimitReached):
        await schedules.create(context, TENANT, plan(at=1))
    assert (await schedules.list_(context, "rival", ListSchedules())).schedules == ()

    purged = await purge(context, TENANT, PurgeHooks())
    assert (purged.webhooks, purged.schedules) == (0, 2)
    assert (await schedules.list_(context, TENANT, ListSchedules())).schedules == ()


async def test_an_exact_retry_makes_no_second_schedule(context: CommandContext) -> None:
    first = await schedules.create(context, TENANT, plan(id="sch_own", cron="0 9 * * *"))
    again = await schedules.create(context, TENANT, plan(id="sch_own", cron="0 9 * * *"))

    assert (again.id, again.created, again.next) == (first.id, first.created, first.next)
    for other in ({"cron": "0 8 * * *"}, {"cron": "0 9 * * *", "timezone": "Europe/Berlin"}):
        with pytest.raises(Conflict):
            await schedules.create(context, TENANT, plan(id="sch_own", **other))
    await schedules.change(context, TENANT, ChangeSchedule(id="sch_own", paused=True))
    with pytest.raises(Conflict):
        await schedules.create(context, TENANT, plan(id="sch_own", cron="0 9 * * *"))


async def test_who_changes_a_schedule_answers_for_it_and_a_pause_changes_nobody(
    context: CommandContext,
) -> None:
    """Nobody puts words into the mouth of another principal."""
    with caller_of(SUBJECT, {"Fairlead-By": "key:one"}):
        made = await schedules.create(context, TENANT, plan(cron="0 9 * * *"))
    with caller_of(SUBJECT, {"Fairlead-By": "key:two"}):
        paused = await schedules.change(context, TENANT, ChangeSchedule(id=made.id, paused=True))
        assert (paused.by, paused.next) == ("key:one", None)
        change = ChangeSchedule.model_validate({"id": made.id, "prompt": {"text": "other"}})
        changed = await schedules.change(context, TENANT, change)
    assert (changed.by, changed.paused) == ("key:two", True)


async def test_what_was_due_during_a_pause_is_not_made_up_for(context: CommandContext) -> None:
    made = await schedules.create(context, TENANT, plan(cron="* * * * * *"))
    await schedules.change(context, TENANT, ChangeSchedule(id=made.id, paused=True))
    before = ids.now_ms()
    resumed = await schedules.change(context, TENANT, ChangeSchedule(id=made.id, paused=False))

    assert resumed.next is not None
    assert resumed.next > before


async def test_a_single_time_that_passed_during_a_pause_is_over(context: CommandContext) -> None:
    """Unless somebody names a time anew, together with the end of the pause or later."""
    made = await schedules.create(context, TENANT, plan(at=ids.now_ms() + 60_000))
    await schedules.change(context, TENANT, ChangeSchedule(id=made.id, paused=True))
    past = ids.now_ms() - 1_000
    await schedules.change(context, TENANT, ChangeSchedule(id=made.id, at=past))

    resumed = await schedules.change(context, TENANT, ChangeSchedule(id=made.id, paused=False))
    assert resumed.next is None
    await schedules.change(context, TENANT, ChangeSchedule(id=made.id, paused=True))
    again = ChangeSchedule(id=made.id, paused=False, at=past - 1)
    assert (await schedules.change(context, TENANT, again)).next == past - 1
