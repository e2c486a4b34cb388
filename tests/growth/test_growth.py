"""What a sweep, a list or a budget costs does not depend on how many sessions there are.

`make growth` goes up to a million sessions and prints the table of docs/operations/benchmarks.md.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import psycopg
import pytest
from psycopg import sql

from fairlead_gateway.reads.postgres import NEAR_ASKS, RECENT_CANDIDATES
from fairlead_gateway.reads.queries import query as gateway_query
from fairlead_gateway.reads.read_model import ASKS_MAX, Order, SessionAnchor, SessionFilter
from fairlead_gateway.reads.session_lists import NEAR_SESSIONS, list_parameters, list_statement
from fairlead_projector import database
from fairlead_projector.ask_recheck import EXPIRE_ROWS
from fairlead_projector.ask_recheck import PAGE_ROWS as ASK_ROWS
from fairlead_projector.database import query
from fairlead_projector.sweep import AFFORDABLE_ROWS, PAGE_ROWS
from fairlead_testing.postgres import Server
from tests.growth.generated_rows import NOW_MS, TENANT, generate_rows
from tests.growth.plans import PlanCost, explain

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3_600)]

SIZES: Final = [int(size) for size in os.environ.get("GROWTH", "1000,30000").split(",")]
PAGE_MAX: Final = max(ASK_ROWS, PAGE_ROWS, NEAR_ASKS, NEAR_SESSIONS)
# The way through an index to a row is a page longer for a hundred times as many rows.
PAGES_EACH: Final = 5
PAGES_MORE: Final = 50


class Question(NamedTuple):
    """A statement that a service sends, with values for a database of some size."""

    statement: bytes | sql.Composed
    parameters: Mapping[str, object]


def sweep_questions() -> Iterator[tuple[str, Question]]:
    first = {"look_at": -1, "tenant": "", "session_id": ""}
    page = {**first, "now": NOW_MS, "limit": PAGE_ROWS}
    yield "sweep: sessions that should move", Question(query("load_moving"), page)
    budgets = {"tenants": [TENANT], "costs": [1.0], "tokens": [None]}
    yield "sweep: tenants that allow more", Question(query("load_affordable_tenants"), budgets)
    rest = {"tenant": TENANT, "session_id": "", "limit": AFFORDABLE_ROWS}
    yield "sweep: sessions over a raised budget", Question(query("load_affordable"), rest)


def ask_questions() -> Iterator[tuple[str, Question]]:
    key = {"tenant": "", "session_id": "", "request_id": ""}
    page = {**key, "limit": ASK_ROWS}
    yield "asks: a page for approvals", Question(query("load_asks_page"), page)
    old = {**key, "asked_at": -1, "before": 300, "limit": EXPIRE_ROWS}
    yield "asks: those that expired", Question(query("load_old_asks"), old)
    wanted = {"tenant": TENANT, "near": NEAR_ASKS, "limit": ASKS_MAX}
    for kind in ("permission", "question"):
        yield f"asks: every {kind}", Question(gateway_query("asks"), {**wanted, "kind": kind})
    for directory in ("/work", "/rare"):
        values = {**wanted, "kind": "permission", "directory": directory}
        yield f"asks: near, in {directory}", Question(gateway_query("asks_near"), values)
    rare = {**wanted, "kind": "permission", "directory": "/rare"}
    yield "asks: in /rare", Question(gateway_query("asks_in_directory"), rare)
    family = {**wanted, "kind": "permission", "session_id": "ses_00000006"}
    yield "asks: of child sessions", Question(gateway_query("child_asks"), family)


def list_questions(sessions: int) -> Iterator[tuple[str, Question]]:
    middle = SessionAnchor(sessions // 2, "ses_")

    def listed(
        name: str, order: Order = "desc", *, at: SessionAnchor | None = None, **by: object
    ) -> Question:
        wanted = SessionFilter(**by)  # type: ignore[arg-type]  # each filter has its type
        parameters = list_parameters(TENANT, wanted, order=order, after=at, limit=50)
        return Question(list_statement(name, wanted, order), parameters)

    yield "list: newest", listed("sessions")
    yield "list: oldest", listed("sessions", "asc")
    yield "list: a page in the middle", listed("sessions", at=middle)
    yield "list: of a project", listed("sessions", project="project_1")
    yield "list: of a rare project", listed("sessions", project="rare")
    yield "list: of a directory", listed("sessions", directory="/work")
    yield "list: of a rare directory", listed("sessions", directory="/rare", at=middle)
    yield "list: of a workspace", listed("sessions", workspace="wrk_rare")
    yield "list: project and directory", listed("sessions", project="rare", directory="/rare")
    yield "list: of archived sessions", listed("sessions", archived="only")
    yield "list: without children", listed("sessions", roots=True)
    yield "list: children of a session", listed("sessions", parent="ses_00000006")
    yield "search: a common word", listed("sessions_near", search="session")
    yield "search: a rare word, near", listed("sessions_near", search="zebra")
    yield "search: a rare word", listed("sessions_by_title", search="zebra")
    yield (
        "search: a rare word of a project",
        listed("sessions_by_title", search="zebra", project="rare"),
    )
    yield "search: two rare letters", listed("sessions_by_title", search="zE")
    yield "search: no such word", listed("sessions_by_title", "asc", search="unheard-of")
    yield "list: sessions that run", Question(gateway_query("active"), {"tenant": TENANT})
    lately = {"tenant": TENANT, "since": 0, "limit": 50, "candidates": 50 * RECENT_CANDIDATES}
    yield "list: sessions that changed lately", Question(gateway_query("recent_sessions"), lately)


def usage_questions() -> Iterator[tuple[str, Question]]:
    yield "budget: totals of a tenant", Question(query("tenant_totals"), {"tenant": TENANT})
    principal = {"tenant": TENANT, "principal": "user:7"}
    yield "quota: totals of a principal", Question(query("principal_totals"), principal)


def projection_questions() -> Iterator[tuple[str, Question]]:
    numbers = [number for number in range(1, 200) if number % 10 != 9][:100]
    batch = {
        "tenants": [TENANT] * 100,
        "session_ids": [f"ses_{number:08}" for number in numbers],
        "message_ids": [f"msg_{number}" for number in numbers],
    }
    names = (
        "load_sessions",
        "load_asks",
        "load_pending",
        "load_newest_assistants",
        "load_messages",
    )
    for name in names:
        yield f"projection: {name}", Question(query(name), batch)
    one = {"tenant": TENANT, "session_id": "ses_00000001"}
    yield "projection: purge", Question(query("purge_session"), one)
    yield "read: one session", Question(gateway_query("session"), one)


async def measure(dsn: str, sessions: int) -> dict[str, PlanCost]:
    """What each question costs in a database with so many sessions."""
    await generate_rows(dsn, sessions)
    questions = {
        **dict(sweep_questions()),
        **dict(ask_questions()),
        **dict(list_questions(sessions)),
        **dict(usage_questions()),
        **dict(projection_questions()),
    }
    async with await database.connect(dsn) as connection:
        return {name: await explain(connection, *question) for name, question in questions.items()}


def print_table(measured: Mapping[int, Mapping[str, PlanCost]]) -> None:
    sizes = list(measured)
    print("\n| rows read / pages touched |", " | ".join(f"{size:,}" for size in sizes), "|")  # noqa: T201
    print("|---|" + "---|" * len(sizes))  # noqa: T201
    for name in measured[sizes[0]]:
        cells = (measured[size][name] for size in sizes)
        print(f"| {name} |", " | ".join(f"{cell.rows} / {cell.buffers}" for cell in cells), "|")  # noqa: T201


async def test_questions_cost_the_same_for_few_and_for_many_sessions(postgres: Server) -> None:
    """A15: by the rows and pages that Postgres read, because a loaded machine falsifies every clock."""
    measured: dict[int, dict[str, PlanCost]] = {}
    for size in SIZES:
        name = sql.Identifier(f"growth_{size}")
        with psycopg.connect(postgres.dsn(), autocommit=True) as admin:
            admin.execute(sql.SQL("CREATE DATABASE {}").format(name))
        try:
            measured[size] = await measure(postgres.dsn(f"growth_{size}"), size)
        finally:
            with psycopg.connect(postgres.dsn(), autocommit=True) as admin:
                admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
    print_table(measured)

    few, many = measured[min(SIZES)], measured[max(SIZES)]
    assert {name: cost.scanned for name, cost in many.items() if cost.scanned} == {}
    assert {name for name, cost in many.items() if not cost.indexes} == set()
    more_sorted = {
        name: cost.sorted_rows for name, cost in many.items() if cost.sorted_rows > PAGE_MAX
    }
    assert more_sorted == {}, "sorted more than a page"
    more_rows = {
        name: (few[name].rows, cost.rows)
        for name, cost in many.items()
        if cost.rows > max(PAGES.get(name, 0), few[name].rows + 100)
    }
    assert more_rows == {}, "read more rows"
    more_pages = {
        name: (few[name].buffers, cost.buffers)
        for name, cost in many.items()
        if cost.buffers > few[name].buffers + PAGES_EACH * cost.rows + PAGES_MORE
    }
    assert more_pages == {}, "touched more pages"


# A full page of a long list has more rows than a short list; each ask has the row of its session.
PAGES: Final = {
    "asks: a page for approvals": 2 * ASK_ROWS,
    "asks: every permission": ASKS_MAX,
    "asks: every question": ASKS_MAX,
    "asks: near, in /work": 2 * NEAR_ASKS,
    "asks: near, in /rare": 2 * NEAR_ASKS,
    "search: a rare word, near": NEAR_SESSIONS,
    "search: a common word": NEAR_SESSIONS,
}
