"""`fairlead migrate` as operators run it: roles from variables, then the tables."""

import os
import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from fairlead_projector.roles.names import GATEWAY, MIGRATOR, PROJECTOR

pytestmark = pytest.mark.integration

ROLES = {"MIGRATOR": MIGRATOR, "PROJECTOR": PROJECTOR, "GATEWAY": GATEWAY}
PASSWORD = "planted-password"  # noqa: S105 - of a server that lives as long as the test


def fairlead(*argv: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fairlead_cli", *argv],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.defpath, **env},
    )


@pytest.fixture
def env(dsn: str) -> Iterator[dict[str, str]]:
    """The variables of the deployment's job; the roles are dropped after the test."""
    variables = {"FAIRLEAD_DSN_ADMIN": dsn}
    for name, role in ROLES.items():
        variables[f"FAIRLEAD_DSN_{name}"] = make_conninfo(dsn, user=role, password=PASSWORD)
    yield variables
    with psycopg.connect(dsn, autocommit=True) as admin:
        for name in ROLES.values():
            if admin.execute("SELECT FROM pg_roles WHERE rolname = %s", (name,)).fetchone() is None:
                continue
            admin.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(name)))
            admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def test_roles_and_tables_are_made_once_and_again(env: dict[str, str]) -> None:
    runs = [fairlead("migrate", "--create-roles", env=env) for _ in range(2)]
    alone = fairlead("migrate", env={"FAIRLEAD_POSTGRES_MIGRATE_DSN": env["FAIRLEAD_DSN_MIGRATOR"]})

    assert [run.returncode for run in (*runs, alone)] == [0, 0, 0], (runs, alone)
    assert runs[0].stdout == runs[1].stdout
    assert PASSWORD not in runs[0].stdout + runs[0].stderr
    with psycopg.connect(env["FAIRLEAD_DSN_GATEWAY"]) as connection:
        connection.execute("SELECT * FROM read.session")


def test_a_service_role_cannot_migrate(env: dict[str, str]) -> None:
    assert fairlead("migrate", "--create-roles", env=env).returncode == 0
    for name in ("PROJECTOR", "GATEWAY"):
        address = env[f"FAIRLEAD_DSN_{name}"]

        refused = fairlead("migrate", env={"FAIRLEAD_POSTGRES_DSN": address})

        assert refused.returncode == 1
        assert "permission denied" in refused.stderr
        assert PASSWORD not in refused.stderr


def test_a_missing_variable_is_named(env: dict[str, str]) -> None:
    del env["FAIRLEAD_DSN_GATEWAY"]

    refused = fairlead("migrate", "--create-roles", env=env)

    assert refused.returncode == 2
    assert "FAIRLEAD_DSN_GATEWAY" in refused.stderr


def test_one_login_for_two_roles_is_refused(env: dict[str, str]) -> None:
    env["FAIRLEAD_DSN_GATEWAY"] = env["FAIRLEAD_DSN_PROJECTOR"]

    refused = fairlead("migrate", "--create-roles", env=env)

    assert refused.returncode == 1
    assert "its own name" in refused.stderr
