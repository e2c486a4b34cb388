"""Chooses the script of a request: its directive, else a scenario, else the model's name, else an echo."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

from fairlead_cli.sim import directive
from fairlead_cli.sim.directive import DirectiveTurn
from fairlead_cli.sim.memory import TOO_LONG, recall_script, summary_text, wants_summary
from fairlead_cli.sim.scenario import Scenario
from fairlead_cli.sim.script import (
    ENDINGS,
    HostedTool,
    HttpRefusal,
    Script,
    ScriptedCall,
    ScriptedTokens,
    SimRequest,
    StreamFault,
    filler_text,
)
from fairlead_cli.sim.structured import WantedOutput

_CHUNKS_MODEL = re.compile(r"chunks-(\d+)(?:-delay-(\d+))?")
_FLAKY_MODEL = re.compile(r"flaky-(\d+)")
_ERROR_MODEL = re.compile(r"error-([45]\d\d)")
_TOO_MANY_REQUESTS = 429
_HOSTED_KINDS: Mapping[str, Literal["search", "run"]] = {"search": "search", "run": "run"}
# These models echo, with the fields that their name stands for.
_ECHO_MODELS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "slow": {"chunk_delay_ms": 50, "first_byte_delay_ms": 200},
        "think": {"reasoning": "Let me think about it."},
        "length": {"finish": "length"},
        "filter": {"finish": "content_filter"},
        "overflow": {"refusal": TOO_LONG},
        **{ending: {"fault": StreamFault(ending)} for ending in ENDINGS},
    }
)


def choose_script(
    request: SimRequest,
    scenarios: Sequence[Scenario] = (),
    draw: int = 0,
    wanted: WantedOutput | None = None,
) -> Script:
    """The script of the next turn. Raises BadDirective.

    `draw` is the request's random number from 0 to 99: a flaky model fails below its own number.
    `wanted` is the structured output that the request asks for: without a script a value that fits.
    """
    recalled = recall_script(request)
    if recalled is not None:
        return recalled
    if wants_summary(request):
        return _model_script(request, draw)
    turns = directive.find_turns(request.user_text)
    if turns is None:
        turns = next((scenario.turns for scenario in scenarios if scenario.fits(request)), None)
    if turns is None:
        return _model_script(request, draw) if wanted is None else wanted.script()
    if request.rounds >= len(turns):
        return echo_script(request)
    return _turn_script(turns[request.rounds], request)


def echo_script(request: SimRequest) -> Script:
    """The default: repeat the text of the user or of the last tool, or summarise when asked to."""
    if wants_summary(request):
        return Script(answer=summary_text(request))
    text = (
        f"The tool said: {request.tool_text}"
        if request.rounds
        else f"You said: {request.user_text}"
    )
    return Script(answer=directive.strip_directives(text).strip())


def _model_script(request: SimRequest, draw: int) -> Script:
    """The script of a model that is named for its behaviour; any other name echoes."""
    name = request.model.rpartition("/")[2]
    if match := _CHUNKS_MODEL.fullmatch(name):
        return Script(answer=filler_text(int(match[1])), chunk_delay_ms=float(match[2] or 0))
    if match := _ERROR_MODEL.fullmatch(name):
        return Script(refusal=_refusal(int(match[1]), {}))
    if match := _FLAKY_MODEL.fullmatch(name):
        fails = draw < int(match[1])
        return Script(refusal=_refusal(503, {})) if fails else echo_script(request)
    if name == "hosted" and request.rounds == 0:
        search = HostedTool("search", request.user_text, "A page")
        return replace(echo_script(request), hosted_tools=(search,))
    if name == "tool" and request.rounds == 0:
        return Script(calls=(ScriptedCall("echo", '{"text":"hello"}'),))
    return replace(echo_script(request), **_ECHO_MODELS.get(name, {}))


def _turn_script(turn: DirectiveTurn, request: SimRequest) -> Script:
    status = turn.integer("status")
    return Script(
        answer=_answer(turn, request),
        reasoning=turn.text("reasoning") or "",
        chunks=turn.integer("chunks") if turn.has("answer") else None,
        chunk_delay_ms=turn.number("delay_ms") or 0,
        first_byte_delay_ms=turn.number("first_byte_ms") or 0,
        hosted_tools=tuple(
            HostedTool(_HOSTED_KINDS[kind], input_, output)
            for kind, input_, output in turn.hosted_tools
        ),
        calls=tuple(ScriptedCall(name, arguments) for name, arguments in turn.calls),
        finish=turn.text("finish"),
        tokens=_tokens(turn),
        refusal=None if status is None else _refusal(status, turn.fields),
        fault=_fault(turn),
        times=turn.integer("times"),
    )


def _answer(turn: DirectiveTurn, request: SimRequest) -> str:
    """The given answer; else as many words as `chunks` says; else nothing beside calls, or an echo."""
    answer, chunks = turn.text("answer"), turn.integer("chunks")
    if answer is not None:
        return answer
    if chunks is not None:
        return filler_text(chunks)
    return "" if turn.calls else echo_script(request).answer


def _tokens(turn: DirectiveTurn) -> ScriptedTokens:
    return ScriptedTokens(
        turn.integer("input_tokens"),
        turn.integer("output_tokens"),
        turn.integer("cached_tokens") or 0,
    )


def _fault(turn: DirectiveTurn) -> StreamFault | None:
    endings = ((ending, turn.integer(ending)) for ending in ENDINGS)
    return next(
        (StreamFault(ending, after) for ending, after in endings if after is not None), None
    )


def _refusal(status: int, fields: dict[str, str]) -> HttpRefusal:
    default = 1.0 if status == _TOO_MANY_REQUESTS else None
    after = fields.get("retry_after")
    return HttpRefusal(
        status,
        fields.get("error", f"The simulated provider answers {status}"),
        fields.get("code"),
        default if after is None else float(after),
    )
