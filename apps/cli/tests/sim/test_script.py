"""The script that is chosen for a request, and the fields of a directive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_cli.sim.choice import choose_script
from fairlead_cli.sim.directive import BadDirective
from fairlead_cli.sim.script import (
    Script,
    ScriptedCall,
    ScriptedTokens,
    SimRequest,
    StreamFault,
    script_for_attempt,
    split_text,
)


def script_for(text: str, model: str = "any", rounds: int = 0, tool_text: str = "") -> Script:
    return choose_script(SimRequest(model, text, rounds, tool_text))


def test_any_model_echoes_what_the_user_said() -> None:
    assert script_for("hello") == Script(answer="You said: hello")


def test_a_directive_is_not_part_of_the_echo() -> None:
    assert script_for("hello [[sim: delay_ms=5]]") == Script("You said: hello", chunk_delay_ms=5)


def test_a_directive_wins_over_the_model() -> None:
    script = script_for('[[sim: chunks=2 delay_ms=5 answer="he llo"]]', model="error-500")

    assert script == Script(answer="he llo", chunks=2, chunk_delay_ms=5)


def test_chunks_without_an_answer_ask_for_that_many_words() -> None:
    assert len(split_text(script_for("[[sim: chunks=20]]").answer, None)) == 20


def test_a_refusal_can_be_directed() -> None:
    refusal = script_for("[[sim: status=429 error='slow down' retry_after=2.5 times=1]]").refusal

    assert refusal is not None
    assert (refusal.status, refusal.message, refusal.retry_after_s) == (429, "slow down", 2.5)


@pytest.mark.parametrize("ending", ["cut", "drop", "stall", "malformed", "fail"])
def test_every_fault_can_be_directed_or_be_a_model(ending: str) -> None:
    from_directive = script_for(f"[[sim: {ending}=3]]").fault
    from_model = script_for("x", model=f"sim/{ending}").fault

    assert from_directive == StreamFault(ending, 3)  # type: ignore[arg-type]
    assert from_model == StreamFault(ending, 1)  # type: ignore[arg-type]


def test_turns_of_a_tool_loop_are_separated_and_then_the_tool_is_echoed() -> None:
    text = """[[sim: tool=read args='{"path":"a; b"}' tool=list ; answer="done"]]"""

    assert script_for(text).calls == (ScriptedCall("read", '{"path":"a; b"}'), ScriptedCall("list"))
    assert script_for(text, rounds=1) == Script(answer="done")
    assert script_for(text, rounds=2, tool_text="ok").answer == "The tool said: ok"


def test_usage_and_finish_can_be_directed() -> None:
    script = script_for("[[sim: input_tokens=9 output_tokens=3 cached_tokens=4 finish=length]]")

    assert (script.tokens, script.finish) == (ScriptedTokens(9, 3, 4), "length")


@pytest.mark.parametrize("text", ["chunks=many", "wings=2", 'answer="open', "args={}"])
def test_a_directive_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(BadDirective):
        script_for(f"[[sim: {text}]]")


@pytest.mark.parametrize(
    ("model", "status", "retry_after_s"),
    [("error-429", 429, 1.0), ("error-500", 500, None), ("overflow", 400, None)],
)
def test_models_named_for_errors_refuse(
    model: str, status: int, retry_after_s: float | None
) -> None:
    refusal = script_for("x", model=model).refusal

    assert refusal is not None
    assert (refusal.status, refusal.retry_after_s) == (status, retry_after_s)


def test_models_named_for_their_pace_keep_it() -> None:
    script = script_for("x", model="chunks-100-delay-20")

    assert (len(split_text(script.answer, None)), script.chunk_delay_ms) == (100, 20)
    assert script_for("x", model="slow").chunk_delay_ms > 0
    assert script_for("x", model="fast") == Script(answer="You said: x")


def test_the_tool_model_calls_once_and_then_speaks() -> None:
    assert script_for("x", model="tool").calls
    assert script_for("x", model="tool", rounds=1, tool_text="y").answer == "The tool said: y"


def test_faults_that_come_a_few_times_are_over_afterwards() -> None:
    script = script_for("[[sim: status=500 times=2 answer=ok]]")

    assert [script_for_attempt(script, n).refusal is None for n in (1, 2, 3)] == [
        False,
        False,
        True,
    ]


@given(st.text(), st.none() | st.integers(1, 30))
def test_pieces_are_the_whole_text(text: str, chunks: int | None) -> None:
    pieces = split_text(text, chunks)

    assert "".join(pieces) == text
    assert all(pieces)
    assert chunks is None or len(pieces) <= chunks
