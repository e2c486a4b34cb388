"""Read models of any size, made by Postgres itself: what grows is at rest or waits, as in real life.

Of all sessions, three in ten wait for a person, one in ten waits for a time, and one in ten rests over a
budget. The sessions that should move are as many in a small database as in a large one.
"""

from typing import Final

from fairlead_projector import database
from fairlead_projector.database import Connection, query
from fairlead_projector.migrations import load_migrations, migrate

EARLIER: Final = 7
TENANT: Final = "big"
NOW_MS: Final = 1_800_000_000_000
MOVING: Final = 200
OWNED: Final = 50
RARE: Final = 10

_SESSIONS: Final = """
    INSERT INTO projection.session (
           tenant, session_id, seq, position, project_id, title, directory, workspace_id, tokens, cost,
           created_at, updated_at, parent_id, asks, waiting, wake_at, owed, work_requested, rested,
           budget_cost)
    SELECT CASE WHEN n %% 10 = 9 THEN 'small_' || n %% 1000 ELSE %(tenant)s END,
           'ses_' || to_char(n, 'FM00000000'), 5, n,
           CASE WHEN n %% (%(count)s / %(rare)s) = 1 THEN 'rare' ELSE 'project_' || n %% 5 END,
           CASE WHEN n %% (%(count)s / %(rare)s) = 1 THEN 'Mend the Zebra crossing'
                ELSE 'New session - ' || to_timestamp(n)::text END,
           CASE WHEN n %% (%(count)s / %(rare)s) = 1 THEN '/rare'
                WHEN n %% 5 = 0 THEN '/work/' || n %% 1000 ELSE '/work' END,
           CASE WHEN n %% (%(count)s / %(rare)s) = 1 THEN 'wrk_rare' END,
           '{"input": 10, "output": 10, "reasoning": 0, "cache": {"read": 0, "write": 0}}', 1,
           n, n, CASE WHEN n %% 7 = 0 THEN 'ses_' || to_char(n - 1, 'FM00000000') END,
           (n %% 10 IN (1, 2, 3))::int, n %% 10 IN (1, 2, 3),
           CASE WHEN n %% 10 = 4 THEN %(now)s + 3600000 + n END,
           n %% 10 IN (1, 2, 3, 4), n %% 10 IN (1, 2, 3, 4),
           CASE WHEN n %% 10 IN (5, 6) THEN 'over-budget' END,
           CASE WHEN n %% 10 = 5 THEN 1 END
      FROM generate_series(1, %(count)s) AS n
"""
_MOVING: Final = """
    UPDATE projection.session
       SET owed = true, work_requested = true, waiting = false, wake_at = NULL,
           owner = CASE WHEN position <= %(owned)s * (%(count)s / %(moving)s) THEN 'run_1' END
     WHERE position %% (%(count)s / %(moving)s) = 0
"""
_ASKS: Final = """
    INSERT INTO projection.session_ask (
           tenant, session_id, request_id, kind, seq, request, asked_at)
    SELECT tenant, session_id, 'per_' || position,
           CASE WHEN position %% 10 = 3 THEN 'question' ELSE 'permission' END, 5,
           '{"action": "vcs", "resources": ["git push"]}', created_at
      FROM projection.session
     WHERE asks > 0
"""
_TOTALS: Final = """
    INSERT INTO projection.tenant_total (tenant, shard, sessions, cost, tokens)
    SELECT tenant, position %% 8, count(*), sum(cost), 20 * count(*)
      FROM projection.session
     GROUP BY 1, 2
     UNION ALL
    SELECT 'idle_' || n, shard, 0, 1, 1
      FROM generate_series(1, 2000) AS n, generate_series(0, 7) AS shard
"""
_PRINCIPALS: Final = """
    INSERT INTO projection.principal_total (tenant, principal, shard, sessions)
    SELECT DISTINCT tenant, 'user:' || position %% 1000, position %% 8, 1
      FROM projection.session
"""
_INPUTS: Final = """
    INSERT INTO projection.session_input (
           tenant, session_id, message_id, admitted_seq, delivery, prompt, created_at)
    SELECT tenant, session_id, 'msg_' || position, 2, 'queue', '{"text": "hi"}', created_at
      FROM projection.session
"""
_MESSAGES: Final = """
    INSERT INTO projection.session_message (tenant, session_id, message_id, seq, type, message)
    SELECT tenant, session_id, 'msg_' || position, 3, 'assistant', '{"text": "hi"}'
      FROM projection.session
"""
_EVENTS: Final = """
    INSERT INTO projection.session_event (
           tenant, session_id, seq, event_id, type, version, time, data)
    SELECT tenant, session_id, 1, 'evt_' || position, 'session.created', 1, created_at, '{}'
      FROM projection.session
"""


async def generate_rows(dsn: str, sessions: int) -> None:
    """Fill a database with so many sessions, bring it to this release, and let Postgres gather statistics."""
    parameters = {
        "count": sessions,
        "tenant": TENANT,
        "now": NOW_MS,
        "rare": RARE,
        "moving": MOVING,
        "owned": OWNED,
    }
    statements = (_SESSIONS, _MOVING, _ASKS, _TOTALS, _PRINCIPALS, _INPUTS, _MESSAGES, _EVENTS)
    async with await database.connect(dsn) as connection:
        await create_earlier_tables(connection)
        for statement in statements:
            named = {
                name: value for name, value in parameters.items() if f"%({name})s" in statement
            }
            await connection.execute(statement.encode(), named)
        await migrate(connection)
        await connection.execute("VACUUM ANALYZE")


async def create_earlier_tables(connection: Connection) -> None:
    """The tables of the release before the indexes, so that a migration builds these over all rows."""
    await connection.execute(query("create_migration_table"))
    for migration in load_migrations()[:EARLIER]:
        await connection.execute(migration.statement)
        row = {name: getattr(migration, name) for name in ("number", "name", "checksum")}
        await connection.execute(query("record_migration"), row)
