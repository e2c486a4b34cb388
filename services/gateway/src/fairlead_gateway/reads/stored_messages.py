"""The messages of a stored session stay in the read models, unless these were made again without its file."""

from typing import Any

from fairlead_gateway.http.operation import ApiRequest
from fairlead_schema.errors import SessionIsStored


async def require_messages(request: ApiRequest[Any, Any]) -> None:
    """Raise SessionIsStored if only the file of the session has its messages."""
    target = request.target
    if target is None or target.head is None or target.head.seq:
        return
    session = await request.runtime.read_model.session(request.at)
    stored = None if session is None else session.stored
    if stored is not None and stored.lacks_messages:
        raise SessionIsStored(request.at.session_id, stored.name)
