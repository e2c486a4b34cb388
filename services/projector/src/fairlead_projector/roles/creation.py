"""Three roles in Postgres: the migrator owns the tables, the projector writes them, the gateway reads views.

The rights belong to the roles `fairlead_projector` and `fairlead_gateway`. A service may log in under
another name, which is then a member of its role. Migrations give the rights again after each change.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import LiteralString

from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from fairlead_projector.database import Connection, query
from fairlead_projector.errors import UnusableRole
from fairlead_projector.migrations import lock_migrations
from fairlead_projector.roles.names import GATEWAY, PROJECTOR


@dataclass(frozen=True, slots=True)
class Login:
    """The name and the password of one role."""

    name: str
    password: str


@dataclass(frozen=True, slots=True)
class DatabaseLogins:
    """The logins of the three roles."""

    migrator: Login
    projector: Login
    gateway: Login

    def __iter__(self) -> Iterator[Login]:
        return iter((self.migrator, self.projector, self.gateway))


def read_login(dsn: str) -> Login:
    """The login that an address contains. Raises UnusableRole."""
    parts = conninfo_to_dict(dsn)
    name, password = parts.get("user"), parts.get("password")
    if not name or not password:
        raise UnusableRole(str(name or "?"), "its address must contain a user and a password")
    return Login(str(name), str(password))


async def create_roles(admin: Connection, logins: DatabaseLogins) -> None:
    """Create or correct the roles of one database, as an administrator. Safe to repeat.

    Tables of an earlier release get the migrator as their owner. Raises UnusableRole.
    """
    if len({login.name for login in logins}) < len(tuple(logins)):
        raise UnusableRole(logins.migrator.name, "each of the three roles needs its own name")
    async with admin.transaction():
        await lock_migrations(admin)
        for name in (PROJECTOR, GATEWAY):
            if await _has_more_rights(admin, name) is None:
                await admin.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(name)))
        for login in logins:
            await _set_login(admin, login)
        for role, member in ((PROJECTOR, logins.projector), (GATEWAY, logins.gateway)):
            if role != member.name:
                await _execute(admin, "GRANT {} TO {}", role, member.name)
        await _limit_database(admin, logins)
        await _own_objects(admin, logins.migrator.name)


async def _set_login(admin: Connection, login: Login) -> None:
    more_rights = await _has_more_rights(admin, login.name)
    if more_rights:
        raise UnusableRole(login.name, "it is an administrator: choose another user")
    # The server gets a verifier, so no log of statements can contain the password.
    verifier = admin.pgconn.encrypt_password(
        login.password.encode(), login.name.encode(), b"scram-sha-256"
    ).decode()
    verb = "CREATE" if more_rights is None else "ALTER"
    await admin.execute(
        sql.SQL("{} ROLE {} LOGIN PASSWORD {}").format(
            sql.SQL(verb), sql.Identifier(login.name), sql.Literal(verifier)
        )
    )


async def _has_more_rights(admin: Connection, name: str) -> bool | None:
    """Whether a role may do more than its grants say; None when the role does not exist."""
    cursor = await admin.execute(query("load_role"), {"name": name})
    row = await cursor.fetchone()
    return None if row is None else bool(row[0])


async def _limit_database(admin: Connection, logins: DatabaseLogins) -> None:
    """Let only the three roles connect, and only the migrator create schemas and tables."""
    database = admin.info.dbname
    await _execute(admin, "REVOKE ALL ON DATABASE {} FROM PUBLIC", database)
    await _execute(admin, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    await _close_large_objects(admin)
    for login in logins:
        await _execute(admin, "GRANT CONNECT ON DATABASE {} TO {}", database, login.name)
    await _execute(admin, "GRANT CREATE ON DATABASE {} TO {}", database, logins.migrator.name)
    await _execute(admin, "GRANT USAGE, CREATE ON SCHEMA public TO {}", logins.migrator.name)


async def _close_large_objects(admin: Connection) -> None:
    """Let nobody fill the disk with large objects. Postgres only warns an admin who may not."""
    cursor = await admin.execute(query("list_object_writers"))
    for (function,) in await cursor.fetchall():
        statement = f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC"
        await admin.execute(statement.encode())


async def _own_objects(admin: Connection, owner: str) -> None:
    cursor = await admin.execute(query("list_foreign_objects"), {"owner": owner})
    found = await cursor.fetchall()
    # Only a superuser gives away what it owns. Another administrator has to be a member meanwhile.
    must_join = bool(found) and admin.info.parameter_status("is_superuser") != "on"
    if must_join:
        await _execute(admin, "GRANT {} TO CURRENT_USER", owner)
    for kind, space, name in found:
        path = sql.Identifier(name) if space is None else sql.Identifier(space, name)
        statement = sql.SQL("ALTER {} {} OWNER TO {}")
        await admin.execute(statement.format(sql.SQL(kind), path, sql.Identifier(owner)))
    if must_join:
        await _execute(admin, "REVOKE {} FROM CURRENT_USER", owner)


async def _execute(admin: Connection, statement: LiteralString, *names: str) -> None:
    await admin.execute(sql.SQL(statement).format(*(sql.Identifier(name) for name in names)))
