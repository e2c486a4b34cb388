"""The register of message ids is restored from the log (D8)."""

from fairlead_cli.message_ids import RestoredIds, UsedTwice, restore_message_ids
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.ports import START
from fairlead_schema.events import PromptAdmitted
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_service import ids

ONE, TWO = Address("default", "ses_1"), Address("default", "ses_2")


def admitted(message_id: str) -> tuple[Draft, ...]:
    event = PromptAdmitted(message_id=message_id, prompt=Prompt(text="Hello"), delivery="steer")
    return (Draft(ids.event_id(), 1, event),)


async def test_an_id_that_a_session_used_is_bound_to_it_again() -> None:
    eventlog, minted = memory_eventlog(), ids.message_id()
    first = await eventlog.log.append(ONE, "cmt_1", admitted("msg_mine"), after=START)
    await eventlog.log.append(ONE, "cmt_2", admitted(minted), after=first.head)

    assert await restore_message_ids(eventlog) == RestoredIds(1, ())

    assert await eventlog.message_ids.bind("default", "msg_mine", "ses_2") == "ses_1"
    assert await eventlog.message_ids.bind("default", minted, "ses_2") == "ses_2"


async def test_an_id_of_two_sessions_is_named_and_stays_bound_to_one() -> None:
    eventlog = memory_eventlog()
    await eventlog.log.append(ONE, "cmt_1", admitted("msg_mine"), after=START)
    await eventlog.log.append(TWO, "cmt_2", admitted("msg_mine"), after=START)
    await eventlog.message_ids.bind("default", "msg_mine", "ses_2")

    restored = await restore_message_ids(eventlog)

    assert restored == RestoredIds(2, (UsedTwice("msg_mine", "ses_1", "ses_2"),))
