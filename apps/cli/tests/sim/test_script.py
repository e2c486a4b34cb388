"""Which script answers a request, and what its directive means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_cli.sim.choice import choose
from fairlead_cli.sim.directive import BadDirective
from fairlead_cli.sim.script import Ask, Call, Fault, Script, Tokens, pieces, steady


def said(text: str, model: str = "any", rounds: int = 0, tool_said: str = "") -> Script:
    return choose(Ask(model, text, rounds, tool_said))


def test_any_model_echoes_what_the_user_said() -> None:
    assert said("hello") == Script(answer="You said: hello")


def test_a_directive_is_not_part_of_the_echo() -> None:
    assert said("hello [[sim: delay_ms=5]]") == Script("You said: hello", chunk_delay_ms=5)


def test_a_directive_wins_over_the_model() -> None:
    script = said('[[sim: chunks=2 delay_ms=5 answer="he llo"]]', model="error-500")

    assert script == Script(answer="he llo", chunks=2, chunk_delay_ms=5)


def test_chunks_without_an_answer_ask_for_that_many_words() -> None:
    assert len(pieces(said("[[sim: chunks=20]]").answer, None)) == 20


def test_a_refusal_can_be_directed() -> None:
    refusal = said("[[sim: status=429 error='slow down' retry_after=2.5 times=1]]").refusal

    assert refusal is not None
    assert (refusal.status, refusal.message, refusal.retry_after_s) == (429, "slow down", 2.5)


@pytest.mark.parametrize("ending", ["cut", "drop", "stall", "malformed", "fail"])
def test_every_fault_can_be_directed_or_be_a_model(ending: str) -> None:
    directed = said(f"[[sim: {ending}=3]]").fault
    named = said("x", model=f"sim/{ending}").fault

    assert directed == Fault(ending, 3)  # type: ignore[arg-type]
    assert named == Fault(ending, 1)  # type: ignore[arg-type]


def test_turns_of_a_tool_loop_are_separated_and_then_the_tool_is_echoed() -> None:
    text = """[[sim: tool=read args='{"path":"a; b"}' tool=list ; answer="done"]]"""

    assert said(text).calls == (Call("read", '{"path":"a; b"}'), Call("list"))
    assert said(text, rounds=1) == Script(answer="done")
    assert said(text, rounds=2, tool_said="ok").answer == "The tool said: ok"


def test_usage_and_finish_can_be_directed() -> None:
    script = said("[[sim: input_tokens=9 output_tokens=3 cached_tokens=4 finish=length]]")

    assert (script.tokens, script.finish) == (Tokens(9, 3, 4), "length")


@pytest.mark.parametrize("text", ["chunks=many", "wings=2", 'answer="open', "args={}"])
def test_a_directive_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(BadDirective):
        said(f"[[sim: {text}]]")


@pytest.mark.parametrize(
    ("model", "status", "retry_after_s"),
    [("error-429", 429, 1.0), ("error-500", 500, None), ("overflow", 400, None)],
)
def test_models_named_for_errors_refuse(
    model: str, status: int, retry_after_s: float | None
) -> None:
    refusal = said("x", model=model).refusal

    assert refusal is not None
    assert (refusal.status, refusal.retry_after_s) == (status, retry_after_s)


def test_models_named_for_their_pace_keep_it() -> None:
    paced = said("x", model="chunks-100-delay-20")

    assert (len(pieces(paced.answer, None)), paced.chunk_delay_ms) == (100, 20)
    assert said("x", model="slow").chunk_delay_ms > 0
    assert said("x", model="fast") == Script(answer="You said: x")


def test_the_tool_model_calls_once_and_then_speaks() -> None:
    assert said("x", model="tool").calls
    assert said("x", model="tool", rounds=1, tool_said="y").answer == "The tool said: y"


def test_faults_that_come_a_few_times_are_over_afterwards() -> None:
    script = said("[[sim: status=500 times=2 answer=ok]]")

    assert [steady(script, n).refusal is None for n in (1, 2, 3)] == [False, False, True]


@given(st.text(), st.none() | st.integers(1, 30))
def test_pieces_are_the_whole_text(text: str, chunks: int | None) -> None:
    cut = pieces(text, chunks)

    assert "".join(cut) == text
    assert all(cut)
    assert chunks is None or len(cut) <= chunks
