"""A rebuild does not wait for the disk. A crash of Postgres loses rows only with their checkpoints."""

from typing import TYPE_CHECKING

import pytest
from psycopg import OperationalError

from fairlead_projector.projection.group.writer import BatchLimits
from fairlead_projector.projection.rebuild import RebuildProgress, digest, rebuild
from fairlead_projector.projection.workers import replay
from fairlead_testing.postgres import run_postgres
from services.projector.tests.conftest import Projection
from services.projector.tests.projection.test_rebuild import write_log

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder


@pytest.mark.integration
async def test_a_crash_of_postgres_in_a_rebuild_loses_rows_only_with_their_checkpoint(
    log_builder: "LogBuilder", monkeypatch: pytest.MonkeyPatch
) -> None:
    """H-22: a projector goes on from the checkpoints that are left, and the rows are the same."""
    write_log(log_builder)
    monkeypatch.setattr(replay, "LIMITS", BatchLimits(commits_max=10))
    with run_postgres() as server:
        await rebuild(server.dsn(), log_builder.eventlog, progress=lambda _progress: None)
        whole = await digest(server.dsn())

        def crash_in_the_middle(progress: RebuildProgress) -> None:
            if progress.applied:
                server.crash()

        with pytest.raises(OperationalError):
            await rebuild(server.dsn(), log_builder.eventlog, progress=crash_in_the_middle)
        server.start()
        projection = Projection(log_builder, server.dsn())
        async with projection.run():
            await projection.wait_until(projection.is_caught_up)

        assert await digest(server.dsn()) == whole
