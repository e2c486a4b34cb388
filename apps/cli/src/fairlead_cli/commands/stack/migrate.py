"""`fairlead migrate`: create or update the tables in Postgres, and the roles that use them."""

import argparse
import os

from fairlead_cli.addresses import effective_config
from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.errors import UsageError
from fairlead_cli.json_output import print_json
from fairlead_cli.options.stack import ADMIN_VARIABLE, ROLE_VARIABLES
from fairlead_cli.terminal import stdout_console


def run(args: argparse.Namespace) -> int:
    """Create the roles if asked, then apply the missing migrations. Safe to repeat."""
    dsn = _migrator_dsn(args)
    with keep_modules():
        from fairlead_cli.deployment.tables import create_logins, migrate_tables  # noqa: PLC0415
    names = create_logins(os.environ) if args.create_roles else []
    migrate_tables(dsn)
    if args.json:
        print_json({"migrated": True, "roles": names})
        return 0
    out = stdout_console()
    if names:
        out.print(f"roles: {', '.join(names)}", markup=False)
    out.print("the tables are up to date")
    return 0


def _migrator_dsn(args: argparse.Namespace) -> str:
    """The address of the role that owns the tables. Raises UsageError and ConfigError."""
    if not args.create_roles:
        config = effective_config(args).postgres
        return config.migrate_dsn or config.dsn
    missing = [name for name in (ADMIN_VARIABLE, *ROLE_VARIABLES) if not os.environ.get(name)]
    if missing:
        raise UsageError(f"--create-roles needs the variables {', '.join(missing)}")
    return os.environ[ROLE_VARIABLES[0]]
