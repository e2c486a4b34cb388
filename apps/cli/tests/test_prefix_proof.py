"""Inside one epoch each request starts with the whole request before it, on every protocol.

The serialised body of turn n, without its last message, is a byte prefix of the body of turn n+1.
The last message may still grow, because results and system updates join it. Two exceptions:
- Anthropic's cache breakpoint moves with the last message. It marks the cached prefix and is no
  part of it, so the test compares bodies without breakpoints.
- Chat vendors take plain reasoning text only inside an open tool loop, so it leaves with the next
  prompt. Reasoning here has the form that stays (`reasoning_details`).
"""

from typing import Any, Final

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_llm.protocol import PROTOCOLS
from fairlead_schema.provider.request import ModelRequest
from fairlead_session.turn.prefix import Prefix, broken_part, prefix
from fairlead_testing.session_growth import THOUGHTS, Answer, Round, requests

GROWING: Final = {
    "anthropic-messages": "messages",
    "gemini": "contents",
    "openai-chat": "messages",
    "openai-responses": "input",
}
NAMES: Final = {"gemini": "gemini-3-pro", "openai-responses": "gpt-5"}
words = st.text("ab<&é\n ", max_size=6)
answers = st.builds(
    Answer,
    words,
    st.sampled_from(THOUGHTS),
    st.lists(st.sampled_from(("text", "json", "media", "failed")), max_size=3).map(tuple),
    st.booleans(),
    st.booleans(),
)
prompts = st.lists(st.tuples(words, st.booleans()), max_size=2).map(tuple)
rounds = st.lists(st.builds(Round, prompts, words, answers), min_size=2, max_size=5)


def test_every_wire_is_proved() -> None:
    assert set(GROWING) == set(PROTOCOLS)


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
@settings(deadline=None, max_examples=60)
@given(history=rounds)
def test_a_request_opens_with_the_whole_of_the_one_before(
    protocol: str, history: list[Round]
) -> None:
    prefix_before: bytes | None = None
    for request in requests(history, NAMES.get(protocol, "m"), {}):
        whole, request_prefix = serialise(protocol, request)

        assert prefix_before is None or whole.startswith(prefix_before), (prefix_before, whole)
        prefix_before = request_prefix


@settings(deadline=None, max_examples=60)
@given(history=rounds)
def test_native_system_messages_keep_the_prefix_while_the_model_answers(
    history: list[Round],
) -> None:
    """O-20: a native update stands before an answer; after an empty answer it is wrapped."""
    rounds_with_answers = [
        Round(round_.prompts, round_.update, Answer("so", None, round_.answer.local, False, False))  # noqa: FBT003
        for round_ in history
    ]
    prefix_before: bytes | None = None
    for request in requests(rounds_with_answers, "claude", {"native_system": True}):
        whole, request_prefix = serialise("anthropic-messages", request)

        assert prefix_before is None or whole.startswith(prefix_before), (prefix_before, whole)
        prefix_before = request_prefix


@settings(deadline=None, max_examples=60)
@given(history=rounds)
def test_the_fingerprint_sees_no_break_where_there_is_none(history: list[Round]) -> None:
    before: Prefix | None = None
    for request in requests(history, "m", {}):
        now = prefix(request)

        assert before is None or broken_part(before.fingerprint(), now, epoch_changed=False) is None
        before = now


def serialise(protocol: str, request: ModelRequest) -> tuple[bytes, bytes]:
    """The body as bytes, and its part up to the last message."""
    body, growing = PROTOCOLS[protocol].body(request), GROWING[protocol]
    assert list(body)[-1] == growing, "what grows comes last"
    if protocol == "anthropic-messages":
        body = without_breakpoints(body)
    request_prefix = {**body, growing: body[growing][:-1]}
    return orjson.dumps(body), orjson.dumps(request_prefix).removesuffix(b"]}")


def without_breakpoints(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {
            key: without_breakpoints(item) for key, item in value.items() if key != "cache_control"
        }
    return [without_breakpoints(item) for item in value] if isinstance(value, list) else value
