"""Measures how many events a second leave in an export and come in by an import."""

import time
from collections.abc import Iterator
from typing import NamedTuple

import httpx

from fairlead_cli.bench.long_sessions import TURN_EVENTS, record_history
from fairlead_schema.events import SessionCreated
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.location import LocationRef
from fairlead_schema.record import LEVEL_NEWEST, Commit, Draft, encode, record
from fairlead_schema.subjects import Address
from fairlead_schema.transfer.checksum import add_checksum
from fairlead_schema.transfer.lines import ExportHeader, ExportLines
from fairlead_service import ids


class TransferRates(NamedTuple):
    """Events a second, from the first byte of a request to the last byte of its answer."""

    exported: float
    imported: float


async def measure_transfer(url: str, *, events: int) -> TransferRates:
    """Import a session of about that many events, and export it again."""
    session = ids.session_id()
    async with httpx.AsyncClient(base_url=url, timeout=300.0, trust_env=False) as http:
        directory = (await http.get("/api/location")).json()["directory"]
        body = b"".join(_export_lines(session, directory, events))
        start = time.perf_counter()
        imported = await http.post(
            "/api/session/import",
            content=body,
            headers={"content-type": "application/octet-stream"},
        )
        between = time.perf_counter()
        exported = await http.get(f"/api/session/{session}/export")
        end = time.perf_counter()
    imported.raise_for_status()
    exported.raise_for_status()
    count = imported.json()["data"]["accepted"]
    return TransferRates(count / (end - between), count / (between - start))


def _export_lines(session: str, directory: str, events: int) -> Iterator[bytes]:
    """An export of one session. A turn has three commits, as in a real log."""
    header = ExportHeader(
        level=LEVEL_NEWEST, release="bench", scope="session", tenant=DEFAULT_TENANT, at=ids.now_ms()
    )
    lines, at = ExportLines(header), Address(DEFAULT_TENANT, session)
    yield lines.first
    yield lines.begin(session)
    _, *rest = record_history(events=events)
    location = LocationRef(directory=directory)
    created = SessionCreated(title="", project_id="bench", location=location)
    groups = [record((Draft(ids.event_id(), ids.now_ms(), created),), after=0)]
    for start in range(0, len(rest), TURN_EVENTS):
        turn = tuple(rest[start : start + TURN_EVENTS])
        groups += [group for group in (turn[:1], turn[1:4], turn[4:]) if group]
    for group in groups:
        yield lines.commit(add_checksum(at, encode(Commit(ids.commit_id(), group))))
    yield lines.seal()
    yield lines.end()
