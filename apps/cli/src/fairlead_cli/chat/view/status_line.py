"""The status line: what fits into the width, with the most important first."""

from dataclasses import dataclass
from typing import Final

from fairlead_cli.chat.view.plain_text import one_line
from fairlead_cli.chat.view.session_view import SessionView

SEPARATOR: Final = " · "
_K: Final = 1000
_ALMOST_FULL: Final = 0.8


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the session itself does not know."""

    window: int = 0
    """The window of the model; 0 if it is unknown."""
    children_cost: float = 0.0
    is_away: bool = False
    """Whether the server does not answer now."""
    attachments: int = 0
    is_asked: bool = False
    """Whether this session or one of its sub-agents asks a person."""
    is_sub_agent: bool = False
    """Whether a person went into this session from that of its parent."""


def status_line(view: SessionView, around: Surroundings, width: int) -> str:
    """State, model, tokens against the window, cost, agent and title, as far as they fit."""
    state = "reconnecting" if around.is_away else "asks you" if around.is_asked else view.state
    parts = [
        state,
        "sub-agent: Esc returns" if around.is_sub_agent else "",
        view.model,
        usage(view.tokens, around.window),
        money(view.cost + around.children_cost),
        view.agent,
        f"{around.attachments} attached" if around.attachments else "",
        one_line(view.title, 40) if not view.title.startswith("New session - ") else "",
    ]
    line = ""
    for part in filter(None, map(one_line, parts)):
        longer = f"{line}{SEPARATOR}{part}" if line else part
        if len(longer) <= width:
            line = longer
    return line


def usage(tokens: int, window: int) -> str:
    """Tokens in use against the window, as `12k/200k (6%)`."""
    if not tokens:
        return ""
    if not window:
        return f"{_count(tokens)} tokens"
    return f"{_count(tokens)}/{_count(window)} ({tokens / window:.0%})"


def is_almost_full(tokens: int, window: int) -> bool:
    """Whether a compaction is near."""
    return bool(window) and tokens / window > _ALMOST_FULL


def money(cost: float) -> str:
    """A cost in dollars, with as many digits as say something."""
    if not cost:
        return "$0"
    return f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}".rstrip("0")


def _count(tokens: int) -> str:
    if tokens < _K:
        return str(tokens)
    if tokens < 10 * _K:
        return f"{tokens / _K:.1f}k"
    return f"{tokens // _K}k" if tokens < _K * _K else f"{tokens / _K / _K:.1f}M"
