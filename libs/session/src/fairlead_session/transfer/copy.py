"""Writes a verified export anew as a copy: the same sessions under new ids."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from pydantic_core import to_json

from fairlead_schema.ids import SessionId
from fairlead_schema.subjects import Address
from fairlead_schema.transfer.checksum import add_checksum
from fairlead_schema.transfer.lines import (
    ExportedCommit,
    ExportHeader,
    ExportLines,
    OutputBegun,
    OutputChunk,
    SessionBegun,
    SessionSealed,
)
from fairlead_session.transfer.copy_ids import CopiedIds
from fairlead_session.transfer.events import stored_events
from fairlead_session.transfer.reader import trusted_items


def copy_export(lines: Iterable[bytes], root: SessionId, copy: SessionId) -> Iterator[bytes]:
    """The lines of the copy. `root` becomes `copy`, and its children get the ids of their calls."""
    ids, items = CopiedIds(root, copy), trusted_items(lines)
    header = next(items)
    assert isinstance(header, ExportHeader), "an export begins with its header"
    written = ExportLines(header)
    yield written.first
    for item in items:
        match item:
            case SessionBegun(begin=session_id):
                yield written.begin(ids.session(session_id))
            case ExportedCommit():
                at = Address(header.tenant, ids.session(item.session_id))
                for payload in _copy_commits(ids, item):
                    yield written.commit(add_checksum(at, payload))
            case OutputBegun():
                yield written.output(ids.output(item.output), item.mime, item.bytes)
            case OutputChunk():
                yield written.chunk(item.data)
            case SessionSealed():
                yield written.seal()
            case _:
                yield written.end()


def _copy_commits(ids: CopiedIds, item: ExportedCommit) -> Iterator[bytes]:
    """A commit of the copy for each caller in turn: an import may have joined several commits."""
    events = [ids.event(item.session_id, event) for event in stored_events(item.payload)]
    for by, group in groupby(events, key=lambda event: event.pop("by", None)):
        own = list(group)
        caller = {} if by is None else {"by": by}
        yield to_json({"id": f"cmt_{own[0]['id'][4:]}", **caller, "events": own})
