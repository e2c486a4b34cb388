"""The statements that list sessions: each uses the indexes of its order and of its filters."""

from typing import Final, LiteralString

from psycopg import sql

from fairlead_gateway.reads.queries import query
from fairlead_gateway.reads.read_model import ArchivedFilter, Order, SessionAnchor, SessionFilter
from fairlead_schema.ids import TenantId

# A text that at least every fortieth title contains fills a page of 50 from so many sessions.
NEAR_SESSIONS: Final = 2_000

_SEQ_MAX: Final = 2**63 - 1
# Sorts after every id: ids are ASCII, and this is the last code point of Unicode.
_ID_MAX: Final = "\U0010ffff"
_FIRST: Final[dict[Order, SessionAnchor]] = {
    "asc": SessionAnchor(-1, ""),
    "desc": SessionAnchor(_SEQ_MAX, _ID_MAX),
}
_AFTER: Final[dict[Order, LiteralString]] = {"asc": ">", "desc": "<"}
_DIRECTION: Final[dict[Order, LiteralString]] = {"asc": "ASC", "desc": "DESC"}
# An index holds the hash of a text, because a long text does not fit into an index.
_FILTERS: Final[dict[str, LiteralString]] = {
    "workspace": "AND md5(workspace_id) = md5(%(workspace)s) AND workspace_id = %(workspace)s",
    "directory": "AND md5(directory) = md5(%(directory)s) AND directory = %(directory)s",
    "project": "AND md5(project_id) = md5(%(project)s) AND project_id = %(project)s",
    "parent": "AND parent_id = %(parent)s",
    "roots": "AND parent_id IS NULL",
}
_ARCHIVED: Final[dict[ArchivedFilter, LiteralString]] = {
    "hide": "AND archived_at IS NULL",
    "include": "",
    "only": "AND archived_at IS NOT NULL",
}


def list_statement(name: str, wanted: SessionFilter, order: Order) -> sql.Composed:
    """The statement of a file for one order, with the conditions of the filters that are set."""
    conditions = [
        sql.SQL(text) for field, text in _FILTERS.items() if getattr(wanted, field) is not None
    ]
    conditions.append(sql.SQL(_ARCHIVED[wanted.archived]))
    return sql.SQL(query(name).decode()).format(
        after=sql.SQL(_AFTER[order]),
        order=sql.SQL(_DIRECTION[order]),
        filters=sql.SQL(" ").join(conditions),
    )


def list_parameters(
    tenant: TenantId,
    wanted: SessionFilter,
    *,
    order: Order,
    after: SessionAnchor | None,
    limit: int,
) -> dict[str, object]:
    """The parameters of such a statement."""
    start = after or _FIRST[order]
    return {
        "tenant": tenant,
        "workspace": wanted.workspace,
        "directory": wanted.directory,
        "project": wanted.project,
        "parent": wanted.parent,
        "search": wanted.search,
        "after_time": start.time,
        "after_id": start.id,
        "limit": limit,
        "near": NEAR_SESSIONS,
    }
