"""One small call to a model, to see that address, key and model fit together."""

import os
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from fairlead_cli.first_use.call_failure import explain_failure
from fairlead_cli.first_use.found_provider import FoundProvider
from fairlead_cli.first_use.trial_answer import TrialAnswer, TrialFailed
from fairlead_llm.http import stream
from fairlead_llm.transport import clients
from fairlead_runner.turn.model_target import (
    ModelNotConfigured,
    model_price,
    provider_endpoint,
    provider_transport,
)
from fairlead_schema.catalog import ModelRef
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderFailure,
    ProviderUsage,
    StepFinish,
    TextChunk,
)
from fairlead_schema.provider.request import Generation, ModelRequest, TextPart, UserTurn
from fairlead_service.config.configuration import Config
from fairlead_session.turn.usage import cost, tokens

QUESTION: Final = "Reply with one word: hello"
# Enough for a model that thinks before it says a word.
OUTPUT_TOKENS_MAX: Final = 256
CONNECT_S: Final = 10.0
ANSWER_S: Final = 60.0
# A server on this machine may have to read a large model from its disk first.
LOADED_ANSWER_S: Final = 300.0


async def call_once(config: Config, found: FoundProvider, ref: ModelRef) -> TrialAnswer:
    """Ask the model for a word. Raises TrialFailed."""
    provider, model = config.provider[ref.provider_id], config.model(ref)
    assert model is not None, "the configuration was checked"
    try:
        endpoint = provider_endpoint(provider, ref)
    except ModelNotConfigured as error:
        raise TrialFailed(str(error)) from error
    request = ModelRequest(
        model=model.id or ref.id,
        turns=(UserTurn((TextPart(QUESTION),)),),
        generation=Generation(max_tokens=OUTPUT_TOKENS_MAX),
    )
    answer_s = LOADED_ANSWER_S if found.preset.is_local else ANSWER_S
    bounded = replace(endpoint, connect_s=CONNECT_S, first_byte_s=answer_s, idle_s=answer_s)
    start = time.monotonic()
    async with clients(keepalive_max=1) as client_for:
        client = client_for(provider_transport(provider))
        async with aclosing(stream(client, bounded, request)) as events:
            text, usage = await _read(events, found, ref)
    used = tokens(usage)
    price = cost(used, model_price(model.cost))
    return TrialAnswer(text, used, price, time.monotonic() - start)


async def _read(
    events: AsyncIterator[ProviderEvent], found: FoundProvider, ref: ModelRef
) -> tuple[str, ProviderUsage]:
    text, usage = "", ProviderUsage()
    async for event in events:
        match event:
            case TextChunk(text=chunk):
                text += chunk
            case StepFinish():
                usage = event.usage
            case ProviderFailure():
                raise TrialFailed(explain_failure(event, found, ref, os.environ))
            case _:
                pass
    return " ".join(text.split()), usage
