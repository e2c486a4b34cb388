"""Events of a session as updates for an editor: golden pairs, and laws for all turns."""

import json
from pathlib import Path
from typing import Any

import pytest
from acp import schema

from fairlead_cli.acp.translation.ask_options import (
    label_of,
    permission_call,
    permission_options,
    question_call,
    question_options,
    reply_of,
)
from fairlead_cli.acp.translation.question_forms import form_answers, question_form
from fairlead_cli.acp.translation.replay import open_asks, open_calls, without_reverted
from fairlead_cli.acp.translation.session_options import SessionOptions
from fairlead_cli.acp.translation.updates import UpdateTranslator
from fairlead_client import ReceivedEvent
from fairlead_schema.permission import PermissionRequest, QuestionRequest
from fairlead_testing.protocol_samples import TURNS, durable, read_turn

GOLDEN = Path(__file__).parent / "golden"
MODELS = [{"providerID": "sim", "id": "fast", "name": "Fast", "limit": {"context": 1000}}]

Json = dict[str, Any]


def options() -> SessionOptions:
    agents = [{"id": "build", "mode": "primary"}, {"id": "helper", "mode": "subagent"}]
    return SessionOptions(agents, MODELS, "build", "sim/fast")


def translate(events: list[Json]) -> list[Json]:
    """Each event with the updates that an editor gets for it."""
    translator = UpdateTranslator("/work", options())
    return [
        {
            "event": event["type"],
            "updates": [
                update.model_dump(mode="json", by_alias=True, exclude_none=True)
                for update in translator.take(ReceivedEvent(**event))
            ],
        }
        for event in events
    ]


def text_of(pairs: list[Json], kind: str) -> str:
    updates = [update for pair in pairs for update in pair["updates"]]
    return "".join(u["content"]["text"] for u in updates if u["sessionUpdate"] == kind)


@pytest.mark.parametrize("name", TURNS)
def test_a_turn_becomes_its_golden_updates(name: str) -> None:
    assert translate(read_turn(name)) == json.loads((GOLDEN / f"{name}.json").read_text())


@pytest.mark.parametrize("name", TURNS)
@pytest.mark.parametrize("kind", ["agent_message_chunk", "agent_thought_chunk"])
def test_a_replay_shows_the_same_text_as_the_live_stream(name: str, kind: str) -> None:
    """No word is missing and none comes twice, whichever fragments were lost."""
    turn = read_turn(name)
    fragments = [index for index, event in enumerate(turn) if event["seq"] is None]
    whole = text_of(translate(durable(turn)), kind)

    for first in range(len(fragments) + 1):
        kept = set(fragments[:first])
        some = [event for index, event in enumerate(turn) if event["seq"] or index in kept]
        assert text_of(translate(some), kind) == whole


def test_the_editors_own_prompt_is_not_shown_again() -> None:
    turn = read_turn("text")
    own = next(event["data"]["messageID"] for event in turn if event["type"] == "prompted")
    translator = UpdateTranslator("/work", options(), own_prompts={own})

    updates = [update for event in turn for update in translator.take(ReceivedEvent(**event))]

    assert "user_message_chunk" not in {update.session_update for update in updates}


def test_a_permission_offers_to_save_only_what_can_be_saved() -> None:
    asked = next(e for e in read_turn("permission") if e["type"] == "permission.v2.asked")
    request = PermissionRequest.model_validate(asked["data"])

    call = permission_call(request)

    assert (call.title, call.kind) == ("bash: echo hello", "execute")
    assert [o.option_id for o in permission_options(request)] == ["once", "always", "reject"]
    unsaved = request.model_copy(update={"save": None})
    assert [o.option_id for o in permission_options(unsaved)] == ["once", "reject"]


@pytest.mark.parametrize(
    ("outcome", "reply"),
    [
        (schema.AllowedOutcome(outcome="selected", option_id="always"), "always"),
        (schema.AllowedOutcome(outcome="selected", option_id="nonsense"), "reject"),
        (schema.DeniedOutcome(outcome="cancelled"), None),
    ],
)
def test_an_unknown_choice_permits_nothing(
    outcome: schema.AllowedOutcome | schema.DeniedOutcome, reply: str | None
) -> None:
    assert reply_of(schema.RequestPermissionResponse(outcome=outcome)) == reply


def test_a_question_offers_its_labels() -> None:
    asked = next(e for e in read_turn("question") if e["type"] == "question.v2.asked")
    request = QuestionRequest.model_validate(asked["data"])
    question = request.questions[0]

    assert question_call(request, question).title == "Way"
    assert [o.name for o in question_options(question)] == ["Left", "Right", "Dismiss"]
    chosen = schema.AllowedOutcome(outcome="selected", option_id="option:1")
    assert label_of(question, schema.RequestPermissionResponse(outcome=chosen)) == "Right"


def test_asks_without_an_answer_wait_after_a_replay() -> None:
    turn = [ReceivedEvent(**event) for event in read_turn("permission")]
    until_asked = turn[: [event.type for event in turn].index("permission.v2.asked") + 1]

    assert [event.type for event in open_asks(until_asked)] == ["permission.v2.asked"]
    assert open_asks(turn) == []


def test_a_replay_leaves_out_a_first_prompt_that_was_taken_back() -> None:
    turn = [ReceivedEvent(**event) for event in durable(read_turn("text"))]
    prompt = next(event.data["messageID"] for event in turn if event.type == "prompted")
    data = {"messageID": prompt, "before": True}
    revert = ReceivedEvent("revert.committed", data, "evt_99", 99, 1)

    assert [event.type for event in without_reverted([*turn, revert])] == ["session.created"]


def test_a_replay_leaves_out_what_a_revert_took_back() -> None:
    turn = [ReceivedEvent(**event) for event in durable(read_turn("text"))]
    prompt = next(event.data["messageID"] for event in turn if event.type == "prompted")
    revert = ReceivedEvent("revert.committed", {"messageID": prompt}, "evt_99", 99, 1)

    assert [event.type for event in without_reverted([*turn, revert])] == [
        "session.created",
        "prompt.admitted",
        "prompted",
    ]


def test_calls_without_a_result_run_after_a_replay() -> None:
    turn = [ReceivedEvent(**event) for event in read_turn("permission")]
    until_called = turn[: [event.type for event in turn].index("tool.called") + 1]

    assert [event.type for event in open_calls(until_called)] == ["tool.called"]
    assert open_calls(turn) == []


def test_commands_are_offered_with_their_names() -> None:
    commands: list[Json] = [{"name": "review", "description": "Reviews a file"}, {"name": "tidy"}]

    update = SessionOptions(commands=commands).available_commands()

    assert update is not None
    assert [(one.name, one.description) for one in update.available_commands] == [
        ("review", "Reviews a file"),
        ("tidy", "tidy"),
    ]
    assert SessionOptions().available_commands() is None


def test_a_form_has_a_choice_and_own_words_for_each_question() -> None:
    asked = next(e for e in read_turn("question") if e["type"] == "question.v2.asked")
    request = QuestionRequest.model_validate(asked["data"])

    form = question_form("ses_1", request).model_dump(mode="json", by_alias=True, exclude_none=True)

    fields = form["requestedSchema"]["properties"]
    assert list(fields) == ["question-1", "question-1-own"]
    assert [one["const"] for one in fields["question-1"]["oneOf"]] == ["Left", "Right"]
    assert form["toolCallId"] == request.tool.call_id if request.tool else False


@pytest.mark.parametrize(
    ("content", "answers"),
    [
        ({"question-1": "Left"}, [["Left"]]),
        ({"question-1": "Left", "question-1-own": " up "}, [["Left", "up"]]),
        ({"question-1": ["Left", "Right"]}, [["Left", "Right"]]),
        ({"question-1": 5, "other": "x"}, [[]]),
        (None, [[]]),
    ],
)
def test_a_filled_form_becomes_answers(content: Json | None, answers: list[list[str]]) -> None:
    asked = next(e for e in read_turn("question") if e["type"] == "question.v2.asked")

    assert form_answers(QuestionRequest.model_validate(asked["data"]), content) == answers


def test_progress_of_a_call_and_a_title_of_the_model_are_shown() -> None:
    content = [{"type": "text", "text": "half"}]
    shown = translate(
        [
            event("tool.progress", assistantMessageID="msg_1", callID="call_1", content=content),
            event("title.ended", title="A title"),
        ]
    )

    (progress,), (title,) = (pair["updates"] for pair in shown)
    assert progress["sessionUpdate"] == "tool_call_update"
    assert progress["content"][0]["content"]["text"] == "half"
    assert (title["sessionUpdate"], title["title"]) == ("session_info_update", "A title")


def event(type_: str, **data: object) -> Json:
    return {"type": type_, "data": data, "id": "evt_1", "seq": 1}
