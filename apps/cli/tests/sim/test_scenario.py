"""Scripts from scenario files, hosted tools, and flaky models."""

from pathlib import Path

import pytest

from fairlead_cli.sim.choice import choose_script
from fairlead_cli.sim.directive import BadDirective
from fairlead_cli.sim.request_log import RequestLog
from fairlead_cli.sim.scenario import BadScenario, load_scenarios, parse_scenarios
from fairlead_cli.sim.script import HostedTool, Script, ScriptedCall, SimRequest

FILE = """
[[scenario]]
name = "weather"
model = "demo"
match = "weather in (oslo|paris)"
script = '''
tool=weather args='{"city":"Oslo"}'
; answer="It is sunny."
'''
"""


def test_a_scenario_plays_its_turns_where_model_and_text_fit() -> None:
    scenarios = parse_scenarios(FILE)

    first = choose_script(SimRequest("sim/demo", "The weather in Oslo?"), scenarios)
    second = choose_script(SimRequest("sim/demo", "The weather in Oslo?", 1, "sun"), scenarios)

    assert first.calls == (ScriptedCall("weather", '{"city":"Oslo"}'),)
    assert second == Script(answer="It is sunny.")
    assert choose_script(SimRequest("demo", "hi"), scenarios) == Script(answer="You said: hi")
    assert choose_script(SimRequest("other", "weather in oslo"), scenarios).calls == ()


def test_a_directive_wins_over_a_scenario() -> None:
    request = SimRequest("demo", "weather in oslo [[sim: answer=no]]")

    assert choose_script(request, parse_scenarios(FILE)) == Script(answer="no")


@pytest.mark.parametrize(
    "text",
    [
        "not toml",
        "[other]",
        "scenario = 3",
        "[[scenario]]\nscript = 'answer=x'",
        "[[scenario]]\nmodel = 'm'",
        "[[scenario]]\nmodel = 'm'\nscript = 'wings=2'",
        "[[scenario]]\nmatch = '('\nscript = 'answer=x'",
        "[[scenario]]\nmodel = 3\nscript = 'answer=x'",
        "[[scenario]]\nmodel = 'm'\nscript = 'answer=x'\nwings = 'two'",
    ],
)
def test_a_file_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(BadScenario):
        parse_scenarios(text)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadScenario):
        load_scenarios(tmp_path / "none.toml")


def test_hosted_tools_can_be_directed_or_be_a_model() -> None:
    script = choose_script(SimRequest("m", "[[sim: search=cats found=page run='1+1' answer=so]]"))

    assert script.hosted_tools == (HostedTool("search", "cats", "page"), HostedTool("run", "1+1"))
    assert choose_script(SimRequest("hosted", "cats")).hosted_tools == (
        HostedTool("search", "cats", "A page"),
    )
    with pytest.raises(BadDirective):
        choose_script(SimRequest("m", "[[sim: found=page]]"))


def test_a_flaky_model_fails_by_the_luck_of_the_request() -> None:
    failures = [
        choose_script(SimRequest("flaky-30", "x"), (), draw).refusal is not None
        for draw in range(100)
    ]

    assert sum(failures) == 30


def test_the_same_seed_gives_the_same_luck_and_another_seed_another() -> None:
    def digest(seed: int) -> str:
        return RequestLog(1, seed).add("gemini", "ses_1", "/x", b"body")[0]

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)
