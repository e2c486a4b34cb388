"""Checks the options of a prompt before anything is written: what it names must exist."""

from typing import Any

from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.profile.create import check_agent, check_model
from fairlead_ingest.verbs.profile.restrictions import check_agent_allowed
from fairlead_schema.errors import InvalidRequest, ServiceUnavailable
from fairlead_schema.prompt import OPTIONS_LEVEL, PromptOptions
from fairlead_service.rpc.caller import current_restrictions
from fairlead_session.structured.schema_limits import check_schema


def check_options(context: CommandContext, options: PromptOptions) -> None:
    """Refuse options that cannot hold. Which tools exist is known only where the prompt runs.

    Raises InvalidRequest, ProviderNotFound, Forbidden, or ServiceUnavailable before their level.
    """
    if not options.has_options:
        return
    if context.eventlog.status.current.level < OPTIONS_LEVEL:
        text = (
            "A prompt may have options of its own when no older release runs: "
            "run `fairlead provision --finalise`"
        )
        raise ServiceUnavailable(text, service="session.prompt")
    if options.system is not None and not options.system.strip():
        raise InvalidRequest("The system text is empty", kind="Body", field="prompt.system")
    if options.agent is not None:
        check_agent(context.settings.config, options.agent)
        check_agent_allowed(current_restrictions(), options.agent)
    if options.output_schema is not None:
        _check_schema(context, options.output_schema)
    check_model(context.settings.config, options.model)


def _check_schema(context: CommandContext, schema: dict[str, Any]) -> None:
    refused = check_schema(schema, context.settings.schema_limits)
    if refused is not None:
        raise InvalidRequest(f"prompt.schema: {refused.reason}", kind="Body", field="prompt.schema")
