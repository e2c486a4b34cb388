"""A stream that is copied and comes back, also where the node of the client learns late who takes its chunks."""

import pytest

from fairlead_eventlog.backup.stream_copy import LISTENER_TRIES, open_copy, restore_copy
from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.provision import provision
from fairlead_eventlog.streams import LOG_STATUS
from fairlead_testing.nats import Server
from fairlead_testing.scripted_link import open_scripted_link

pytestmark = pytest.mark.integration
SUBJECT = "$KV.fairlead-log.backup"


@pytest.mark.parametrize("unheard", [0, 3, LISTENER_TRIES])
async def test_a_chunk_that_nobody_heard_is_sent_again(own_server: Server, unheard: int) -> None:
    """In a cluster another node takes the chunks, and its interest travels behind its answer."""
    await provision(own_server.address)
    async with open_scripted_link(own_server.address) as link:
        await link.store(SUBJECT, b"a note")
        async with open_copy(link, LOG_STATUS.name, consumers=False) as copy:
            chunks = [chunk async for chunk in copy.chunks]
        await link.api(f"STREAM.DELETE.{LOG_STATUS.name}")
        link.unheard_chunks = unheard

        if unheard >= LISTENER_TRIES:
            with pytest.raises(LogUnavailable, match="stopped the restore"):
                await restore_copy(link, copy.config, copy.state, chunks)
            return
        await restore_copy(link, copy.config, copy.state, chunks)

        found = await link.last_message(LOG_STATUS.name, SUBJECT)
    assert found is not None
    assert found.payload == b"a note"
