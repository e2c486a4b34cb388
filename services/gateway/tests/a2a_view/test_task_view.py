"""Events of a session as a task of A2A: golden pairs, and laws for all turns."""

import json
from pathlib import Path
from typing import Any

import pytest
from a2a.compat.v0_3 import conversions, types
from a2a.types import AgentCard, Message, Part, Role, StreamResponse, Task
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InvalidParamsError,
    VersionNotSupportedError,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

from fairlead_gateway.a2a_view.translation.agent_card import agent_card
from fairlead_gateway.a2a_view.translation.message_input import answer_of, is_answer, prompt_of
from fairlead_gateway.a2a_view.translation.task_ids import TaskRef, parse_task_id
from fairlead_gateway.a2a_view.translation.task_view import TaskTranslator
from fairlead_gateway.a2a_view.translation.wire_versions import (
    VERSION_03,
    VERSION_1,
    card_json,
    version_of,
)
from fairlead_gateway.turn_view.turn_progress import seq_of, type_of
from fairlead_testing.other_agent import joined_text
from fairlead_testing.protocol_samples import TURNS, durable, envelopes, read_turn, released

GOLDEN = Path(__file__).parent / "golden"
RESTS = {"rejected": "declined", "interrupted": "interrupted", "failed": "failed"}
STATES = {"rejected": "CANCELED", "interrupted": "CANCELED", "failed": "FAILED"}

Json = dict[str, Any]


def translator_of(events: list[Json]) -> TaskTranslator:
    admitted = next(event for event in events if event["type"] == "prompt.admitted")
    return TaskTranslator(TaskRef("ses_sample", admitted["data"]["messageID"], admitted["seq"]))


def follow(
    translator: TaskTranslator, events: list[Json]
) -> list[tuple[str, list[StreamResponse]]]:
    """Each event with the updates that a client gets for it."""
    pairs = []
    for event in events:
        if seq_of(event) is not None:
            translator.progress.take(event)
        pairs.append((type_of(event), translator.take(event)))
    return pairs


def run(name: str, events: list[Json]) -> tuple[list[StreamResponse], Task]:
    translator = translator_of(events)
    pairs = follow(translator, [*envelopes(events), released(RESTS.get(name, "idle"))])
    return [update for _, updates in pairs for update in updates], translator.task()


def translate(name: str, events: list[Json]) -> Json:
    translator = translator_of(events)
    pairs = follow(translator, [*envelopes(events), released(RESTS.get(name, "idle"))])
    return {
        "pairs": [
            {"event": event, "updates": [MessageToDict(update) for update in updates]}
            for event, updates in pairs
        ],
        "task": MessageToDict(translator.task()),
    }


@pytest.mark.parametrize("name", TURNS)
def test_a_turn_becomes_its_golden_task(name: str) -> None:
    assert translate(name, read_turn(name)) == json.loads((GOLDEN / f"{name}.json").read_text())


@pytest.mark.parametrize("name", TURNS)
def test_updates_join_to_the_same_artifacts_as_the_task_has(name: str) -> None:
    """Whichever fragments are lost, no word is missing and none comes twice."""
    turn = read_turn(name)
    fragments = [index for index, event in enumerate(turn) if event["seq"] is None]

    for first in range(len(fragments) + 1):
        kept = set(fragments[:first])
        some = [event for index, event in enumerate(turn) if event["seq"] or index in kept]
        updates, task = run(name, some)
        whole = task.artifacts[-1].parts[0].text if task.artifacts else ""
        assert joined_text(updates) == whole
        assert MessageToDict(task) == MessageToDict(run(name, durable(turn))[1])
        state = f"TASK_STATE_{STATES.get(name, 'COMPLETED')}"
        assert MessageToDict(task)["status"]["state"] == state


def test_a_text_that_a_crash_shortened_is_replaced() -> None:
    turn = read_turn("text")
    lost = [
        {**e, "data": {**e["data"], "text": ""}} if e["type"] == "text.ended" else e for e in turn
    ]

    updates, _ = run("text", lost)

    assert joined_text(updates) == ""


def test_open_asks_make_a_task_want_input() -> None:
    turn = read_turn("permission")
    until_asked = turn[: [event["type"] for event in turn].index("permission.v2.asked") + 1]
    translator = translator_of(turn)
    follow(translator, [*envelopes(until_asked), released("parked")])

    status = MessageToDict(translator.status())

    assert status["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert status["message"]["parts"][1]["data"]["ask"]["action"] == "bash"


def test_a_task_is_found_by_its_id_alone() -> None:
    ref = TaskRef("ses_1", "msg_2", 3)

    assert parse_task_id(ref.task_id) == ref
    for bad in ("", "ses_1", "ses_1.msg_2", "ses_1.msg_2.x", "ses_1.msg_2.3.4", "../ses.msg_2.3"):
        assert parse_task_id(bad) is None


def message(*parts: Part) -> Message:
    return Message(message_id="1", role=Role.ROLE_USER, parts=parts)


def data(value: object) -> Part:
    return Part(data=ParseDict(value, Value()))


def test_a_message_becomes_a_prompt_with_its_files() -> None:
    prompt = prompt_of(
        message(
            Part(text="look"),
            Part(url="https://example.org/a.png", filename="a.png"),
            Part(raw=b"abc", media_type="image/png"),
        ),
        {"agent": "plan", "model": "sim/fast"},
    )

    assert (prompt.text, prompt.agent, prompt.synthetic) == ("look", "plan", True)
    assert [file.uri for file in prompt.files or ()] == [
        "https://example.org/a.png",
        "data:image/png;base64,YWJj",
    ]


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ([], InvalidParamsError),
        ([Part(text="  ")], InvalidParamsError),
        ([Part()], ContentTypeNotSupportedError),
    ],
)
def test_a_message_that_says_nothing_is_refused(parts: list[Part], error: type[A2AError]) -> None:
    with pytest.raises(error):
        prompt_of(message(*parts), {})


PERMISSION = {"per_1": {"id": "per_1", "sessionID": "ses_1", "action": "bash", "resources": ["x"]}}
QUESTION = {"que_1": {"id": "que_1", "sessionID": "ses_1", "questions": [{"question": "Way?"}]}}


@pytest.mark.parametrize(
    ("part", "reply"),
    [
        (Part(text="yes"), "once"),
        (Part(text="Always"), "always"),
        (data({"reply": "reject", "message": "use another"}), "reject"),
        (data({"requestID": "per_1", "reply": "once"}), "once"),
    ],
)
def test_a_permission_is_answered_in_words_or_with_data(part: Part, reply: str) -> None:
    assert answer_of(message(part), PERMISSION).reply == reply


def test_questions_are_answered_with_labels_or_dismissed() -> None:
    assert answer_of(message(Part(text="Left")), QUESTION).answers == [["Left"]]
    assert answer_of(message(data({"answers": [["Up"]]})), QUESTION).answers == [["Up"]]
    assert answer_of(message(data({"dismiss": True})), QUESTION).is_dismissed


@pytest.mark.parametrize(
    ("part", "asks"),
    [
        (Part(text="perhaps"), PERMISSION),
        (data({"reply": "perhaps"}), PERMISSION),
        (data({"requestID": "per_9", "reply": "once"}), PERMISSION),
        (data({"answers": "Left"}), QUESTION),
    ],
)
def test_an_answer_that_says_nothing_is_refused(part: Part, asks: Json) -> None:
    with pytest.raises(InvalidParamsError):
        answer_of(message(part), asks)


def test_the_card_names_agents_only_for_known_callers() -> None:
    public = agent_card("http://x", "1", None)
    known = agent_card("http://x", "1", {"build": "Builds", "plan": None})

    assert [skill.id for skill in public.skills] == ["session"]
    assert [skill.id for skill in known.skills] == ["build", "plan"]
    assert ParseDict(MessageToDict(known), AgentCard()) == known


def test_a_card_is_read_by_clients_of_both_versions() -> None:
    card = agent_card("http://x", "1", None)

    found = card_json(card)

    assert ParseDict(found, AgentCard(), ignore_unknown_fields=True) == card
    earlier = types.AgentCard.model_validate(found)
    assert (earlier.url, earlier.protocol_version) == ("http://x/a2a", "0.3")


@pytest.mark.parametrize("name", TURNS)
def test_the_earlier_version_loses_nothing_of_a_turn(name: str) -> None:
    """Its updates and its task, converted back, are those of the newer version."""
    updates, task = run(name, read_turn(name))

    earlier = [types.Task.model_validate(VERSION_03.task(task))]
    assert MessageToDict(conversions.to_core_task(earlier[0])) == MessageToDict(task)
    assert len([VERSION_03.update(update) for update in updates]) == len(updates)


def test_a_method_has_one_version_and_an_unknown_one_is_refused() -> None:
    assert version_of("SendMessage", "1.0") is VERSION_1
    assert version_of("message/send", None) is VERSION_03
    assert version_of("nonsense", None) is None
    assert version_of("SendMessage", "1.0.7") is version_of("SendMessage", "") is VERSION_1
    for unknown in ("2.0", "1.1", "0.2", "x"):
        with pytest.raises(VersionNotSupportedError):
            version_of("SendMessage", unknown)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("SendMessage", {"message": 5}),
        ("GetTask", {"id": 5}),
        ("message/send", {"message": {"role": "nobody"}}),
        ("tasks/get", {}),
    ],
)
def test_params_that_cannot_be_read_are_refused(method: str, params: Json) -> None:
    wire = version_of(method, None)
    assert wire is not None

    with pytest.raises(InvalidParamsError):
        wire.parse(method, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def test_what_the_session_says_before_a_prompt_is_seen_belongs_to_another_task() -> None:
    turn = read_turn("steered")
    second = [event for event in turn if event["type"] == "prompt.admitted"][1]
    behind = turn[turn.index(second) :]

    _, task = run("steered", behind)

    assert [artifact.parts[0].text for artifact in task.artifacts] == ["rather this"]


def test_a_task_shows_as_much_as_the_caller_wants() -> None:
    translator = translator_of(read_turn("text"))
    follow(translator, [*envelopes(read_turn("text")), released("idle")])

    assert len(translator.task().history) == len(translator.task(history_length=5).history) == 1
    assert len(translator.task(history_length=0).history) == 0
    assert len(translator.task(with_artifacts=False).artifacts) == 0


def test_data_in_a_prompt_is_its_json() -> None:
    data = Part(data=ParseDict({"rows": [1, 2.5]}, Value()))

    assert prompt_of(message(Part(text="sum"), data), {}).text == 'sum\n{"rows": [1, 2.5]}'
    assert not is_answer(message(Part(text="yes"), data))


def test_an_answer_that_comes_again_is_no_prompt() -> None:
    given = message(Part(data=ParseDict({"reply": "once"}, Value())))

    assert is_answer(given)
    with pytest.raises(InvalidParamsError, match="Nothing is asked any more"):
        answer_of(given, {})


def test_a_withdrawn_prompt_cancels_its_task() -> None:
    turn = read_turn("text")[:2]
    translator = translator_of(turn)
    message_id = translator.ref.message_id
    data = {"timestamp": 1700000000000, "messageID": message_id}
    withdrawn = {"type": "input.cancelled", "data": data, "durable": {"seq": 3, "version": 1}}

    follow(translator, [*envelopes(turn), withdrawn])

    assert MessageToDict(translator.task())["status"]["state"] == "TASK_STATE_CANCELED"
