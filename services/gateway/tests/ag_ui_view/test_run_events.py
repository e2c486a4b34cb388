"""Events of a session as events of an AG-UI run: golden pairs, and laws for all turns."""

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from ag_ui.core import BaseEvent, RunAgentInput
from ag_ui.core.types import ResumeEntry

from fairlead_gateway.ag_ui_view.translation.run_ends import end_of
from fairlead_gateway.ag_ui_view.translation.run_events import RunTranslator
from fairlead_gateway.ag_ui_view.translation.run_input import (
    delivery_of,
    parse_input,
    permission_reply,
    prompt_of,
    question_answers,
)
from fairlead_gateway.turn_view.turn_progress import TurnProgress, seq_of, type_of
from fairlead_schema.errors import InvalidRequest
from fairlead_testing.protocol_samples import TURNS, durable, envelopes, read_turn, released

GOLDEN = Path(__file__).parent / "golden"
RESTS = {"rejected": "declined", "interrupted": "interrupted", "failed": "failed"}

Json = dict[str, Any]


def translate(name: str, events: list[Json]) -> list[Json]:
    """Each event with what a front end gets for it, and the end of the run."""
    translator, progress = RunTranslator(), TurnProgress(_prompt(events))
    pairs = []
    for event in [*envelopes(events), released(RESTS.get(name, "idle"))]:
        if seq_of(event) is not None:
            progress.take(event)
        pairs.append({"event": type_of(event), "run": dump(translator.take(event))})
    assert progress.is_over
    end = end_of(progress, thread_id="thread", run_id="run")
    return [*pairs, {"event": "end", "run": dump([*translator.close(), end])}]


def dump(events: list[BaseEvent]) -> list[Json]:
    return [event.model_dump(mode="json", by_alias=True) for event in events]


def _prompt(events: list[Json]) -> str:
    found: str = next(e["data"]["messageID"] for e in events if e["type"] == "prompted")
    return found


def streamed(pairs: list[Json]) -> list[Json]:
    return [event for pair in pairs for event in pair["run"]]


@pytest.mark.parametrize("name", TURNS)
def test_a_turn_becomes_its_golden_run(name: str) -> None:
    assert translate(name, read_turn(name)) == json.loads((GOLDEN / f"{name}.json").read_text())


@pytest.mark.parametrize("name", TURNS)
def test_every_beginning_has_its_end_and_no_text_differs_from_the_log(name: str) -> None:
    """Whichever fragments are lost, the front end gets the same texts and arguments."""
    turn = read_turn(name)
    fragments = [index for index, event in enumerate(turn) if event["seq"] is None]
    whole = joined(streamed(translate(name, durable(turn))))

    for first in range(len(fragments) + 1):
        kept = set(fragments[:first])
        some = [event for index, event in enumerate(turn) if event["seq"] or index in kept]
        assert joined(streamed(translate(name, some))) == whole


def joined(events: list[Json]) -> dict[str, str]:
    """The text of each message and the arguments of each call. Every open one must be closed."""
    texts: dict[str, str] = {}
    is_open: set[str] = set()
    for event in events:
        id_ = event.get("toolCallId") or event.get("messageId") or event.get("stepName", "")
        match event["type"].rsplit("_", 1):
            case [_, "START" | "STARTED"] if event["type"] != "REASONING_START":
                assert id_ not in is_open
                is_open.add(id_)
                texts.setdefault(id_, "")
            case [_, "CONTENT" | "ARGS"]:
                assert id_ in is_open
                texts[id_] += event["delta"]
            case [_, "END" | "FINISHED"] if event["type"] not in {"REASONING_END", "RUN_FINISHED"}:
                is_open.remove(id_)
            case _:
                pass
    assert not is_open
    return texts


def test_open_asks_end_a_run_with_interrupts() -> None:
    turn = envelopes(read_turn("permission"))
    progress = TurnProgress(None)
    for event in turn[: [type_of(event) for event in turn].index("permission.v2.asked") + 1]:
        if seq_of(event) is not None:
            progress.take(event)
    progress.take(released("parked"))

    end: Any = end_of(progress, thread_id="thread", run_id="run")

    assert progress.waits_for_people
    assert not progress.is_over
    assert end.outcome.type == "interrupt"
    assert end.outcome.interrupts[0].reason == "tool_call"
    assert end.outcome.interrupts[0].tool_call_id.startswith("call_")


@pytest.mark.parametrize(
    ("payload", "status", "reply"),
    [
        ({"reply": "always"}, "resolved", "always"),
        ({"reply": "reject", "message": "use another"}, "resolved", "reject"),
        ("once", "resolved", "once"),
        ({"approved": True}, "resolved", "once"),
        (False, "resolved", "reject"),
        (None, "cancelled", "reject"),
    ],
)
def test_a_permission_is_answered_in_several_forms(
    payload: object, status: Literal["resolved", "cancelled"], reply: str
) -> None:
    entry = ResumeEntry(interrupt_id="per_1", status=status, payload=payload)

    assert permission_reply(entry).reply == reply


def test_questions_are_answered_with_labels_or_dismissed() -> None:
    def answers(
        payload: object, status: Literal["resolved", "cancelled"] = "resolved"
    ) -> list[list[str]] | None:
        return question_answers(ResumeEntry(interrupt_id="que_1", status=status, payload=payload))

    assert answers({"answers": [["Left", "Right"], ["Up"]]}) == [["Left", "Right"], ["Up"]]
    assert answers(["Left", "Up"]) == [["Left"], ["Up"]]
    assert answers("Left") == [["Left"]]
    assert answers(None, "cancelled") is None


@pytest.mark.parametrize("payload", [None, {}, {"reply": "maybe"}, 5])
def test_an_answer_that_says_nothing_is_refused(payload: object) -> None:
    entry = ResumeEntry(interrupt_id="per_1", status="resolved", payload=payload)

    with pytest.raises(InvalidRequest, match="reply"):
        permission_reply(entry)
    with pytest.raises(InvalidRequest, match="answers"):
        question_answers(entry)


def given(**fields: object) -> RunAgentInput:
    return parse_input({"threadId": "t", "runId": "r", "messages": [], **fields})


def test_the_last_message_is_the_prompt_with_its_context_and_choices() -> None:
    parts = [
        {"type": "text", "text": "look"},
        {
            "type": "image",
            "source": {"type": "data", "value": "AAAA", "mimeType": "image/png"},
        },
    ]
    prompt = prompt_of(
        given(
            messages=[
                {"id": "1", "role": "user", "content": "before"},
                {"id": "2", "role": "user", "content": parts},
            ],
            context=[{"description": "page", "value": "/orders"}],
            forwardedProps={"agent": "plan", "model": "sim/fast"},
        )
    )

    assert prompt is not None
    assert (prompt.text, prompt.system, prompt.agent) == ("look", "page: /orders", "plan")
    assert prompt.files is not None
    assert prompt.files[0].uri == "data:image/png;base64,AAAA"
    assert prompt.model is not None
    assert prompt.model.id == "fast"


def test_a_run_whose_last_message_is_no_persons_has_no_prompt() -> None:
    said = [{"id": "1", "role": "assistant", "content": "hello"}]

    assert prompt_of(given(messages=said)) is None
    assert delivery_of(given(forwardedProps={"delivery": "queue"})) == "queue"


@pytest.mark.parametrize(
    "messages",
    [
        [{"id": "1", "role": "user", "content": "  "}],
        [{"id": "1", "role": "nobody", "content": "hi"}],
        [{"role": "user"}],
    ],
)
def test_a_prompt_that_cannot_be_read_is_refused(messages: list[Json]) -> None:
    with pytest.raises(InvalidRequest):
        prompt_of(given(messages=messages))


def test_a_file_at_a_provider_is_left_out_and_fails_no_run() -> None:
    part = {"type": "image", "source": {"type": "file", "value": "file-1", "provider": "openai"}}
    said = {"id": "1", "role": "user", "content": [{"type": "text", "text": "look"}, part]}

    prompt = prompt_of(given(messages=[said]))

    assert prompt is not None
    assert prompt.files is None
    assert prompt.text.startswith("look\n[image left out: it is at a provider")


def test_usage_counts_cache_and_reasoning_in_its_totals() -> None:
    progress = TurnProgress("msg_1", is_promoted=True)
    model = {"providerID": "anthropic", "id": "claude"}
    tokens = {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 40, "write": 50}}
    ended = {"finish": "stop", "cost": 0.1, "tokens": tokens}
    progress.take(_event("step.started", {"model": model}))
    progress.take(_event("step.ended", ended))

    (usage,) = dump([end_of(progress, thread_id="t", run_id="r")])[0]["usage"]

    assert (usage["provider"], usage["model"]) == ("anthropic", "claude")
    assert (usage["inputTokens"], usage["outputTokens"], usage["totalTokens"]) == (91, 5, 96)
    assert (usage["cachedInputTokens"], usage["cacheWriteInputTokens"]) == (40, 50)
    assert usage["reasoningTokens"] == 3


def _event(type_: str, data: Json) -> Json:
    return {"type": type_, "data": data, "durable": {"seq": 1, "version": 1}}


def test_a_withdrawn_prompt_cancels_its_run_and_a_title_changes_the_state() -> None:
    progress = TurnProgress("msg_1")
    progress.take(_event("input.cancelled", {"messageID": "msg_1"}))

    (end,) = dump([end_of(progress, thread_id="t", run_id="r")])
    (title,) = dump(RunTranslator().take(_event("title.ended", {"title": "A title"})))

    assert end["outcome"] == {"type": "cancelled"}
    assert title["delta"] == [{"op": "replace", "path": "/title", "value": "A title"}]
