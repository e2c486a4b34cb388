"""Budgets: how much a session and its tenant may use, checked before each provider call."""

from dataclasses import dataclass

from fairlead_schema.catalog import Tokens
from fairlead_session.state.session import Session
from fairlead_session.state.usage import Budget


@dataclass(frozen=True, slots=True)
class TenantUsage:
    """What a tenant has used, and its limits. An absent limit does not limit.

    `is_known` is false while nobody reports the usage. A limit may be exceeded then.
    """

    cost: float = 0.0
    tokens: int = 0
    cost_max: float | None = None
    tokens_max: int | None = None
    is_known: bool = True

    @property
    def has_limits(self) -> bool:
        return self.cost_max is not None or self.tokens_max is not None


def exceeded_limit(session: Session, tenant: TenantUsage) -> str | None:
    """The limit that is used up, in one sentence. None if all limits hold."""
    profile, budget = session.profile, session.usage.budget
    if profile is None:
        return None
    cost, tokens = total_usage(session)
    if budget.cost is not None and cost >= budget.cost:
        return f"the session has used {cost:.4f} of {budget.cost:.4f} USD"
    if budget.tokens is not None and tokens >= budget.tokens:
        return f"the session has used {tokens} of {budget.tokens} tokens"
    if tenant.cost_max is not None and tenant.cost >= tenant.cost_max:
        return f"the tenant has used {tenant.cost:.4f} of {tenant.cost_max:.4f} USD"
    if tenant.tokens_max is not None and tenant.tokens >= tenant.tokens_max:
        return f"the tenant has used {tenant.tokens} of {tenant.tokens_max} tokens"
    return None


def total_usage(session: Session) -> tuple[float, int]:
    """The cost and the tokens of a session, with all its child sessions.

    A complete stream counts at once, although its step ends only when its calls are settled.
    """
    cost, tokens = own_usage(session)
    children = session.usage.children
    return cost + children.cost, tokens + children.tokens


def own_usage(session: Session) -> tuple[float, int]:
    """The cost and the tokens of a session without its child sessions."""
    cost, tokens = session.usage.cost, count_tokens(session.usage.tokens)
    attempt = session.turn.attempt
    finished = None if attempt is None else attempt.finished
    if finished is not None:
        cost, tokens = cost + finished.cost, tokens + count_tokens(finished.tokens)
    return cost, tokens


def remaining_budget(session: Session) -> Budget:
    """The budget of a new child session: what is left of the budget of its parent."""
    cost, tokens = total_usage(session)
    limit = session.usage.budget
    return Budget(
        cost=None if limit.cost is None else max(0.0, limit.cost - cost),
        tokens=None if limit.tokens is None else max(0, limit.tokens - tokens),
    )


def count_tokens(tokens: Tokens) -> int:
    """All tokens that the tenant pays for."""
    return tokens.input + tokens.output + tokens.reasoning + tokens.cache.read + tokens.cache.write
