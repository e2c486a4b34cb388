"""Which script answers: the prompt's directive, else a scenario, else the model's name, else an echo."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

from fairlead_cli.sim import directive
from fairlead_cli.sim.memory import TOO_LONG, recall, summarises, summary
from fairlead_cli.sim.scenario import Scenario
from fairlead_cli.sim.script import (
    ENDINGS,
    Ask,
    Call,
    Fault,
    Hosted,
    Refusal,
    Script,
    Tokens,
    filler,
)

_NUMBERED = re.compile(r"chunks-(\d+)(?:-delay-(\d+))?")
_FLAKY = re.compile(r"flaky-(\d+)")
_REFUSING = re.compile(r"error-([45]\d\d)")
_TOO_MANY_REQUESTS = 429
_HOSTED: Mapping[str, Literal["search", "run"]] = {"search": "search", "run": "run"}
# Models named for how their echo differs from the plain one.
_MANNERS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "slow": {"chunk_delay_ms": 50, "first_byte_delay_ms": 200},
        "think": {"reasoning": "Let me think about it."},
        "length": {"finish": "length"},
        "filter": {"finish": "content_filter"},
        "overflow": {"refusal": TOO_LONG},
        **{ending: {"fault": Fault(ending)} for ending in ENDINGS},
    }
)


def choose(ask: Ask, scenarios: Sequence[Scenario] = (), draw: int = 0) -> Script:
    """The turn to play. `draw` is the request's own luck, 0 to 99. Raises BadDirective."""
    recalled = recall(ask)
    if recalled is not None:
        return recalled
    if summarises(ask):
        return _named(ask.model, ask, draw)
    turns = directive.turns(ask.said)
    if turns is None:
        turns = next((one.turns for one in scenarios if one.fits(ask)), None)
    if turns is None:
        return _named(ask.model, ask, draw)
    if ask.rounds >= len(turns):
        return echo(ask)
    return _directed(turns[ask.rounds], ask)


def echo(ask: Ask) -> Script:
    """The default: say what was heard, from the user or from the last tool; or sum it up."""
    if summarises(ask):
        return Script(answer=summary(ask))
    heard = f"The tool said: {ask.tool_said}" if ask.rounds else f"You said: {ask.said}"
    return Script(answer=directive.without(heard).strip())


def _named(model: str, ask: Ask, draw: int) -> Script:
    """A model named for what it does; any other name echoes."""
    name = model.rpartition("/")[2]
    if found := _NUMBERED.fullmatch(name):
        return Script(answer=filler(int(found[1])), chunk_delay_ms=float(found[2] or 0))
    if found := _REFUSING.fullmatch(name):
        return Script(refusal=_refusal(int(found[1]), {}))
    if found := _FLAKY.fullmatch(name):
        unlucky = draw < int(found[1])
        return Script(refusal=_refusal(503, {})) if unlucky else echo(ask)
    if name == "hosted" and ask.rounds == 0:
        return replace(echo(ask), hosted=(Hosted("search", ask.said, "A page"),))
    if name == "tool" and ask.rounds == 0:
        return Script(calls=(Call("echo", '{"text":"hello"}'),))
    return replace(echo(ask), **_MANNERS.get(name, {}))


def _directed(given: directive.Turn, ask: Ask) -> Script:
    status = given.whole("status")
    return Script(
        answer=_answer(given, ask),
        reasoning=given.text("reasoning") or "",
        chunks=given.whole("chunks") if given.has("answer") else None,
        chunk_delay_ms=given.number("delay_ms") or 0,
        first_byte_delay_ms=given.number("first_byte_ms") or 0,
        hosted=tuple(Hosted(_HOSTED[kind], asked, found) for kind, asked, found in given.hosted),
        calls=tuple(Call(name, arguments) for name, arguments in given.calls),
        finish=given.text("finish"),
        tokens=_tokens(given),
        refusal=None if status is None else _refusal(status, given.fields),
        fault=_fault(given),
        times=given.whole("times"),
    )


def _answer(given: directive.Turn, ask: Ask) -> str:
    """A given answer is exact; chunks alone ask for that many words; calls need no words."""
    answer, chunks = given.text("answer"), given.whole("chunks")
    if answer is not None:
        return answer
    if chunks is not None:
        return filler(chunks)
    return "" if given.calls else echo(ask).answer


def _tokens(given: directive.Turn) -> Tokens:
    return Tokens(
        given.whole("input_tokens"),
        given.whole("output_tokens"),
        given.whole("cached_tokens") or 0,
    )


def _fault(given: directive.Turn) -> Fault | None:
    named = ((ending, given.whole(ending)) for ending in ENDINGS)
    return next((Fault(ending, after) for ending, after in named if after is not None), None)


def _refusal(status: int, fields: dict[str, str]) -> Refusal:
    default = 1.0 if status == _TOO_MANY_REQUESTS else None
    after = fields.get("retry_after")
    return Refusal(
        status,
        fields.get("error", f"The simulated provider answers {status}"),
        fields.get("code"),
        default if after is None else float(after),
    )
