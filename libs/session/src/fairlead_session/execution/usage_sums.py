"""Sums of what requests used. The fold and the projector share them."""

from fairlead_schema.catalog import CacheTokens, ModelRef, Tokens
from fairlead_schema.session_info import ModelUsage
from fairlead_session.frozen import build_model, replace_fields


def add_tokens(tokens: Tokens, more: Tokens) -> Tokens:
    """The sum of both counts, as `Tokens.plus` gives it. Every step of every fold takes one."""
    cache, other = tokens.cache, more.cache
    return build_model(
        Tokens,
        input=tokens.input + more.input,
        output=tokens.output + more.output,
        reasoning=tokens.reasoning + more.reasoning,
        cache=build_model(
            CacheTokens, read=cache.read + other.read, write=cache.write + other.write
        ),
    )


def add_model_usage(
    models: tuple[ModelUsage, ...], model: ModelRef, cost: float, tokens: Tokens
) -> tuple[ModelUsage, ...]:
    """The usage of all models after one more request."""
    for place, known in enumerate(models):
        if (known.model.id, known.model.provider_id) == (model.id, model.provider_id):
            more = replace_fields(
                known,
                requests=known.requests + 1,
                cost=known.cost + cost,
                tokens=add_tokens(known.tokens, tokens),
            )
            return (*models[:place], more, *models[place + 1 :])
    used = ModelRef(provider_id=model.provider_id, id=model.id)
    return (*models, ModelUsage(model=used, requests=1, cost=cost, tokens=tokens))
