"""Many clients of event streams in a whole stack: what `fairlead bench streams` does, made small."""

import pytest

from fairlead_cli.bench.streams.fan_out import measure_many_sessions, measure_one_session
from fairlead_testing.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

# Far above what a stream holds, and far below a copy of anything large.
KIB_EACH_MAX = 500


async def test_many_clients_of_one_session_get_every_fragment(up: Stack) -> None:
    """H-30, H-37: nobody is cut off, and a further client costs little."""
    pid = up.up.pid("gateway")
    assert pid is not None

    figures = await measure_one_session(
        up.up.http_with_key, pid, up.eventlog, clients=100, fragments=100
    )

    alone, further, _late = figures.values()
    assert 0 < further < alone


async def test_clients_of_many_sessions_get_their_own_fragments(up: Stack) -> None:
    """H-30, H-33: each session has a hub as long as it has a client."""
    pid = up.up.pid("gateway")
    assert pid is not None

    figures = await measure_many_sessions(up.up.http_with_key, pid, up.eventlog, sessions=150)

    (memory_kib,) = (value for name, value in figures.items() if name.endswith("KiB each"))
    assert memory_kib < KIB_EACH_MAX
