"""`fairlead migrate`: create or update the tables in Postgres, and the roles that use them."""

import argparse
import asyncio
import os
from collections.abc import Mapping

import psycopg

from fairlead_cli.addresses import effective_config
from fairlead_cli.embedded.postgres.access import add_password
from fairlead_cli.errors import CommandError, UsageError
from fairlead_cli.json_output import print_json
from fairlead_cli.options.stack import ADMIN_VARIABLE, ROLE_VARIABLES
from fairlead_cli.terminal import stdout_console
from fairlead_projector import database
from fairlead_projector.errors import ProjectorError
from fairlead_projector.migrations import migrate
from fairlead_projector.roles import DatabaseLogins, create_roles, read_login
from fairlead_service.postgres_failure import explain_postgres_failure


def run(args: argparse.Namespace) -> int:
    """Create the roles if asked, then apply the missing migrations. Safe to repeat."""
    names: list[str] = []
    try:
        if args.create_roles:
            logins = asyncio.run(_create_roles(os.environ))
            names = [login.name for login in logins]
            dsn = add_password(os.environ[ROLE_VARIABLES[0]])
        else:
            config = effective_config(args).postgres
            dsn = add_password(config.migrate_dsn or config.dsn)
        asyncio.run(_migrate(dsn))
    except psycopg.Error as error:
        raise CommandError(explain_postgres_failure(error)) from error
    except ProjectorError as error:
        raise CommandError(str(error)) from error
    if args.json:
        print_json({"migrated": True, "roles": names})
        return 0
    out = stdout_console()
    if names:
        out.print(f"roles: {', '.join(names)}", markup=False)
    out.print("the tables are up to date")
    return 0


async def _create_roles(env: Mapping[str, str]) -> DatabaseLogins:
    missing = [name for name in (ADMIN_VARIABLE, *ROLE_VARIABLES) if not env.get(name)]
    if missing:
        raise UsageError(f"--create-roles needs the variables {', '.join(missing)}")
    logins = DatabaseLogins(*(read_login(add_password(env[name])) for name in ROLE_VARIABLES))
    async with await database.connect(add_password(env[ADMIN_VARIABLE])) as admin:
        await create_roles(admin, logins)
    return logins


async def _migrate(dsn: str) -> None:
    async with await database.connect(dsn) as connection:
        await migrate(connection)
