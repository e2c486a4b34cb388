"""`fairlead cost`: what a session has cost by model, or what the sessions of the tenant have."""

import argparse
from typing import Any

from rich.markup import escape

from fairlead_cli.gateway import run_with_client
from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import stdout_console, table
from fairlead_client.answers.answer_models import data_of
from fairlead_client.async_client.client import AsyncFairlead
from fairlead_schema.catalog import Tokens
from fairlead_schema.commands.quota import TenantUsageReport
from fairlead_schema.session_info import SessionInfo


def run(args: argparse.Namespace) -> int:
    if args.session is None:
        _show_tenant(args, *run_with_client(args, lambda client: _load_tenant(client, args.limit)))
    else:
        _show_session(args, run_with_client(args, lambda client: client.get(args.session)))
    return 0


async def _load_tenant(
    client: AsyncFairlead, limit: int
) -> tuple[TenantUsageReport, list[SessionInfo]]:
    usage = data_of(await client.request("GET", "/api/tenant/usage"))
    return TenantUsageReport.model_validate(usage), await client.sessions(limit=limit)


def _show_session(args: argparse.Namespace, session: SessionInfo) -> None:
    below = 0.0 if session.children is None else session.children.cost
    if args.json:
        models = [usage.wire() for usage in session.models or ()]
        print_json({**_fields(session), "children": below, "models": models})
        return
    grid = table("MODEL", "REQUESTS", *_TOKEN_COLUMNS, "COST")
    for usage in session.models or ():
        name = f"{usage.model.provider_id}/{usage.model.id}"
        cells = (*_token_cells(usage.tokens), f"${usage.cost:.4f}")
        grid.add_row(escape(name), f"{usage.requests:,}", *cells)
    grid.add_row("all", "", *_token_cells(session.tokens), f"${session.cost:.4f}")
    out = stdout_console()
    out.print(grid)
    if session.children is not None:
        text = f"sub-agents: ${below:.4f} and {session.children.tokens:,} tokens more"
        out.print(text, style="dim", markup=False)


def _show_tenant(
    args: argparse.Namespace, report: TenantUsageReport, sessions: list[SessionInfo]
) -> None:
    dearest = sorted(sessions, key=lambda session: session.cost, reverse=True)
    if args.json:
        total = {"tenant": report.tenant, "cost": report.cost, "tokens": report.tokens}
        print_json({**total, "sessions": [_fields(session) for session in dearest]})
        return
    grid = table("SESSION", *_TOKEN_COLUMNS, "COST", "TITLE")
    for session in dearest:
        cells = (*_token_cells(session.tokens), f"${session.cost:.4f}")
        grid.add_row(session.id, *cells, escape(session.title))
    out = stdout_console()
    out.print(grid)
    text = f"{report.tenant}: ${report.cost:.4f} and {report.tokens:,} tokens so far; the newest"
    out.print(f"{text} {len(dearest)} sessions are shown", style="dim", markup=False)


_TOKEN_COLUMNS = ("IN", "CACHED", "OUT")


def _token_cells(tokens: Tokens) -> tuple[str, str, str]:
    return (f"{tokens.input:,}", f"{tokens.cache.read:,}", f"{tokens.output:,}")


def _fields(session: SessionInfo) -> dict[str, Any]:
    tokens = session.tokens.wire()
    return {"session": session.id, "cost": session.cost, "tokens": tokens, "title": session.title}
