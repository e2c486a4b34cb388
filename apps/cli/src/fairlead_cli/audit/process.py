"""The process of the auditor: it follows every shard and the receipts; health and metrics over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette

from fairlead_cli.audit.auditor import Auditor
from fairlead_cli.audit.log_follower import LogFollower
from fairlead_eventlog.jetstream.connect import connect
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_service.health import Health
from fairlead_service.process import application
from fairlead_service.supervise import cancel_and_wait, supervise


def build_auditor(address: NatsAddress, *, whole: bool, sessions_max: int) -> Starlette:
    """The application of an auditor. With `whole` it begins with the first commit of the log."""
    health = Health()

    @asynccontextmanager
    async def work() -> AsyncIterator[None]:
        async with connect(address, name="audit") as eventlog:
            health.depend("nats", eventlog.complaint)
            follower = LogFollower(eventlog, Auditor(eventlog, sessions_max=sessions_max))
            health.depend("log", lambda: follower.complaint)
            await follower.begin(whole=whole)
            tasks = [
                asyncio.create_task(supervise(name, part), name=name)
                for name, part in follower.parts().items()
            ]
            try:
                yield
            finally:
                await cancel_and_wait(*tasks)

    return application("audit", work, health)
