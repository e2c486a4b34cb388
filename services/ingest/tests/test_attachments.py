"""Attachments at admission: data is what its type says, or nothing is admitted."""

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_schema.errors import InvalidRequest
from fairlead_testing.images import PNG, data_uri
from services.ingest.tests.conftest import create_session, events, prompt_command


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("data:image/png;base64,aGk=", "its bytes are no whole image/png"),
        (data_uri("image/jpeg", PNG), "it is declared image/jpeg and its bytes are image/png"),
        ("data:image/png;base64,a*", "its data cannot be read"),
    ],
)
async def test_data_that_is_not_what_it_says_is_refused_with_a_reason(
    context: CommandContext, eventlog: EventLog, uri: str, reason: str
) -> None:
    """D12: nothing of the prompt is admitted, and the answer names the file."""
    await create_session(context)
    command = prompt_command(id="msg_1", prompt={"text": "look", "files": [{"uri": uri}]})

    with pytest.raises(InvalidRequest, match=reason) as refused:
        await prompt(context, "default", command)

    assert refused.value.body.field == "prompt.files.0.uri"
    assert len(await events(eventlog)) == 1
