"""`transfer.output`: store a managed output of an import, part by part."""

from fairlead_eventlog.register_ports import OutputPart, OutputParts
from fairlead_ingest.command_context import ContextDep
from fairlead_schema.commands.transfer import OutputStored, StoreOutput
from fairlead_schema.errors import InvalidRequest
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam


async def store_output(
    context: ContextDep, tenant: TenantParam, command: StoreOutput
) -> OutputStored:
    """Store one part. An output that exists stays as it is, whoever it belongs to."""
    outputs = context.eventlog.outputs
    if await outputs.stat(tenant, command.id) is not None:
        return OutputStored(id=command.id, complete=True)
    at = Address(tenant, command.session_id)
    part = OutputPart(command.upload, command.part, command.first_bytes, command.data)
    await outputs.put_part(at, command.id, part)
    if command.digest is None:
        return OutputStored(id=command.id, complete=False)
    if command.mime is None or command.bytes is None:
        raise InvalidRequest("The last part names mime and bytes", kind="Body", field="mime")
    parts = OutputParts(
        upload=command.upload,
        first_bytes=command.first_bytes,
        count=command.part + 1,
        size=command.bytes,
        digest=bytes.fromhex(command.digest),
        mime=command.mime,
    )
    await outputs.finish_parts(at, command.id, parts)
    return OutputStored(id=command.id, complete=True)
