"""What the stacks of one test process share, so that each starts fast: a fork server and an empty database.

A database is made once and copied. `apps/cli/tests` have the first start as people see it.
"""

import atexit
import os
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from fairlead_cli.embedded.fork_server.client import ForkClient
from fairlead_cli.embedded.postgres import server as postgres
from fairlead_cli.embedded.service_environment import common_environment
from fairlead_cli.embedded.state_directory import StateDirectory, prepare_state
from fairlead_testing.embedded_servers import postgres_on, run_processes

# No test takes the power away, and a killed Postgres loses nothing by it.
NO_SYNC = "fsync = off\nfull_page_writes = off\n"


@cache
def shared_forks() -> ForkClient:
    """The fork server of this process."""
    forks = ForkClient(_shared_place() / "fork-server.log", common_environment(os.environ))
    atexit.register(forks.close)
    return forks


async def copy_database(root: Path) -> None:
    """Give a new state directory a copy of the empty database. One with a database keeps it."""
    state = prepare_state(root)
    if not (state.postgres / "data").exists():
        template = await _database_template()
        shutil.copytree(template.postgres, state.postgres, dirs_exist_ok=True)


async def _database_template() -> StateDirectory:
    root = _shared_place() / "template"
    state = StateDirectory(root)
    if not (root / "complete").exists():
        process, server = await postgres_on(prepare_state(root))
        async with run_processes(process):
            await server.access.migrate()
        postgres.forget(server)
        with (server.data / "postgresql.conf").open("a") as config:
            config.write(NO_SYNC)
        (root / "complete").touch()
    return state


@cache
def _shared_place() -> Path:
    place = Path(mkdtemp(prefix="fairlead-shared-"))
    place.chmod(0o755)
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place
