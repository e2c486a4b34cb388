"""`session.upload`: store a file for a later prompt, part by part. Only the last part shows it."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.input.attachments import check_room
from fairlead_ingest.verbs.transfer.output import store_part
from fairlead_schema.commands.transfer import OutputStored, UploadPart
from fairlead_schema.errors import InvalidRequest, PayloadTooLarge
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam


async def upload(context: ContextDep, tenant: TenantParam, command: UploadPart) -> OutputStored:
    """Store one part. The prompt that names the file reads all of it, and checks it again.

    Raises SessionNotFound, Forbidden, LimitReached, PayloadTooLarge or InvalidRequest.
    """
    at, limit = (
        Address(tenant, command.session_id),
        (context.settings.config.ingest.attachment_bytes_max),
    )
    if command.total > limit:
        raise PayloadTooLarge(f"A file of {command.total} bytes exceeds {limit}")
    if command.bytes not in {None, command.total}:
        raise InvalidRequest("The file has another size than its parts say", kind="Body")
    principal = await check_room(context, at, command.total)
    return await store_part(context, at, command, principal=principal)
