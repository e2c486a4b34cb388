"""Commands with an idempotency key: the second time decides nothing and gets the first answer.

An answer that shows a session or an input shows it as it is now, as a repeated create does.
"""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeAlias, get_type_hints

from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.command_key import CommandRepeated, check_new, command_under_key
from fairlead_ingest.verbs.input.edit import edited_receipt
from fairlead_ingest.verbs.sessions import describe, inform_runner, load
from fairlead_schema.commands.input import EditPendingInput
from fairlead_schema.commands.revert import RevertReached
from fairlead_schema.commands.session import (
    DescriptionReached,
    InterruptReached,
    MoveReached,
    SeqReached,
    SessionCommand,
)
from fairlead_schema.errors import InvalidRequest
from fairlead_schema.events import CommandAnswered
from fairlead_schema.ids import TenantId
from fairlead_schema.model import Model
from fairlead_schema.prompt import Receipt
from fairlead_schema.subjects import KEY_HEADER, Address
from fairlead_service.rpc.caller import current_caller, current_key
from fairlead_session.idempotency.keys import command_key

KeyedHandler: TypeAlias = Callable[[CommandContext, TenantId, Any], Awaitable[Model]]


def answer_once(verb: str, handler: KeyedHandler) -> KeyedHandler:
    """The handler of a verb that takes an idempotency key. Without a key it costs nothing."""
    kind: type[Model] = get_type_hints(handler)["return"]

    @wraps(handler)
    async def perform(context: CommandContext, tenant: TenantId, command: SessionCommand) -> Model:
        key = current_key()
        if key is None:
            return await handler(context, tenant, command)
        _check_level(context)
        at = Address(tenant, command.session_id)
        body = command.model_dump(mode="json", by_alias=True, exclude_unset=True)
        hashed = command_key(current_caller(), at.session_id, verb, key, body)
        try:
            check_new(await load(context, at), hashed)
            with command_under_key(at, hashed):
                return await handler(context, tenant, command)
        except CommandRepeated as repeated:
            # The first ingest may have died before its wake.
            await inform_runner(context, at, repeated.session)
            return await _first_answer(context, at, command, kind, repeated)

    return perform


async def _first_answer(
    context: CommandContext,
    at: Address,
    command: SessionCommand,
    kind: type[Model],
    repeated: CommandRepeated,
) -> Model:
    answer, session = repeated.answer, repeated.session
    if kind is Receipt:
        assert isinstance(command, EditPendingInput), "only an edit answers with a receipt"
        return await edited_receipt(context, at, session, command)
    if kind is InterruptReached:
        return InterruptReached(session_id=session.id, seq=answer.seq, outcome=answer.outcome)
    if kind is RevertReached:
        return RevertReached(session_id=session.id, seq=answer.seq, request=answer.request)
    if kind is MoveReached:
        return MoveReached(session_id=session.id, seq=answer.seq, request=answer.request)
    if kind is DescriptionReached:
        shown = describe(context, session)
        return DescriptionReached(session_id=session.id, seq=answer.seq, session=shown)
    assert kind is SeqReached, f"{kind} is no answer of a verb with keys"
    return SeqReached(session_id=session.id, seq=answer.seq)


def _check_level(context: CommandContext) -> None:
    """Refuse a key that the log cannot remember yet, instead of deciding twice."""
    if context.eventlog.status.current.level < CommandAnswered.level:
        text = (
            f"{KEY_HEADER} counts for this request when the upgrade is finalised: send it without a key,"
            " or run `fairlead provision --finalise` when no older release will run again"
        )
        raise InvalidRequest(text, kind="Headers", field=KEY_HEADER)
