"""Requests that each real API refuses, and the text of each refusal."""

from typing import Any

import pytest

from fairlead_cli.sim import anthropic_messages, gemini, openai_responses
from fairlead_cli.sim.response import SimProtocol
from fairlead_cli.sim.signatures import is_genuine, seal, sign, unseal

USE = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
CALL = {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
THOUGHT = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": seal("hm")}
SPOKEN = {"role": "assistant", "content": [{"type": "output_text", "text": "x"}]}


def user(content: object = "hi") -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def messages(*history: object, **fields: object) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 2048, "messages": list(history), **fields}


def items(*history: object, **fields: object) -> dict[str, Any]:
    return {"model": "m", "input": list(history), **fields}


def contents(*history: object, model: str = "gemini-2.5") -> dict[str, Any]:
    return {"model": model, "stream": True, "contents": list(history)}


def parts(role: str, *content: object) -> dict[str, Any]:
    return {"role": role, "parts": list(content)}


def thinking(signature: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": "hm", "signature": signature}


ASKED = parts("user", {"text": "hi"})
CALLED = {"functionCall": {"name": "read", "args": {}}}
ANSWERED = {"functionResponse": {"name": "read", "response": {"output": "ok"}}}
BUDGET = {"type": "enabled", "budget_tokens": 1024}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (None, "valid JSON"),
        ({"max_tokens": 1, "messages": [user()]}, "model: Field required"),
        ({"model": "m", "messages": [user()]}, "max_tokens: Field required"),
        (messages(), "at least one message"),
        (messages(user(), assistant({"type": "text", "text": "So"})), "end with a user message"),
        (messages(user(), {"role": "assistant", "content": "So"}), "end with a user message"),
        (messages({"role": "king", "content": "x"}), "role"),
        (messages(user([{"type": "text", "text": ""}])), "must be non-empty"),
        (messages(assistant(USE)), "first message"),
        (messages({"role": "system", "content": "x"}), "top-level 'system'"),
        (messages(user(), user()), "roles must alternate"),
        (messages(user(), assistant(USE)), "without `tool_result` blocks"),
        (messages(user(), assistant(USE), user("no")), "without `tool_result` blocks"),
        (messages(user(), assistant(USE), user([{"type": "text", "text": "x"}, RESULT])), "t1"),
        (messages(user([RESULT])), "unexpected `tool_use_id`"),
        (messages(user(), assistant(thinking("forged"))), "Invalid `signature`"),
        (messages(user(), thinking=BUDGET, max_tokens=1000), "must be greater than"),
        (
            messages(
                user(),
                assistant({**USE, "id": "toolu_thought_0"}),
                user([{**RESULT, "tool_use_id": "toolu_thought_0"}]),
                thinking=BUDGET,
            ),
            "Expected `thinking`",
        ),
        (
            messages(user([{"type": "text", "text": "x", "cache_control": {}}] * 5)),
            "A maximum of 4 blocks",
        ),
        (messages(user(), {"role": "system", "content": "x"}, user()), "followed by an assistant"),
    ],
)
def test_messages_refuses(body: object, words: str) -> None:
    assert words in (anthropic_messages.refusal_reason(body) or "")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "JSON body"),
        ({"input": "hi"}, "'model'"),
        ({"model": "m"}, "'input'"),
        (items("hi"), "expected an object"),
        (items({"role": "king", "content": "x"}), "role"),
        (items(user([{"type": "output_text", "text": "x"}])), "Supported values"),
        (items(user(), OUTPUT), "No tool call found"),
        (items(user(), CALL), "No tool output found"),
        (
            items(user(), {**THOUGHT, "encrypted_content": "forged"}, SPOKEN),
            "could not be verified",
        ),
        (items(user(), {**THOUGHT, "encrypted_content": None}, SPOKEN), "not found"),
        (items(user(), THOUGHT, user()), "required following item"),
        (items(user(), prompt_cache_key="k" * 65), "too long"),
        (items(user(), previous_response_id="resp_0"), "not found"),
    ],
)
def test_responses_refuses(body: object, words: str) -> None:
    assert words in (openai_responses.refusal_reason(body) or "")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (None, "Invalid JSON"),
        ({"model": "m"}, "contents is not specified"),
        (contents(parts("assistant", {"text": "x"})), "valid role"),
        (contents(parts("user")), "must not be empty"),
        (contents(ASKED, parts("model", {"text": "So"})), "end with a user role"),
        (contents(parts("user", {"words": "x"})), "oneof field"),
        (contents(ASKED, parts("user", ANSWERED)), "immediately after"),
        (contents(ASKED, parts("model", CALLED)), "followed by"),
        (contents(ASKED, parts("model", CALLED, CALLED), parts("user", ANSWERED)), "equal"),
        (contents(parts("user", {"text": "x", "thoughtSignature": "forged"})), "Corrupted"),
        (
            contents(ASKED, parts("model", CALLED), parts("user", ANSWERED), model="gemini-3-pro"),
            "missing a thought_signature",
        ),
    ],
)
def test_gemini_refuses(body: object, words: str) -> None:
    assert words in (gemini.refusal_reason(body) or "")


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        (
            anthropic_messages,
            messages(
                user(),
                assistant(thinking(sign("hm")), {**USE, "id": "toolu_thought_0"}),
                user([{**RESULT, "tool_use_id": "toolu_thought_0"}, {"type": "text", "text": "x"}]),
                {"role": "system", "content": "x"},
                thinking=BUDGET,
            ),
        ),
        (openai_responses, {"model": "m", "input": "hi"}),
        (
            openai_responses,
            items(user(), THOUGHT, CALL, OUTPUT, {"role": "system", "content": "x"}),
        ),
        (
            gemini,
            contents(
                ASKED,
                parts("model", {**CALLED, "thoughtSignature": seal("read")}, CALLED),
                parts("user", ANSWERED, ANSWERED, {"text": "x"}),
                model="gemini-3-pro",
            ),
        ),
    ],
)
def test_what_the_real_thing_accepts_is_accepted(
    protocol: SimProtocol, body: dict[str, Any]
) -> None:
    assert protocol.refusal_reason(body) is None


def test_the_last_round_is_heard_on_every_protocol() -> None:
    requests = [
        anthropic_messages.parse_request(messages(user("go"), assistant(USE, USE), user([RESULT]))),
        openai_responses.parse_request(items(user("go"), THOUGHT, CALL, CALL, OUTPUT, OUTPUT)),
        gemini.parse_request(
            contents(
                parts("user", {"text": "go"}),
                parts("model", CALLED, CALLED),
                parts("user", ANSWERED),
            )
        ),
    ]

    assert [(request.user_text, request.rounds, request.tool_text) for request in requests] == [
        ("go", 1, "ok")
    ] * 3


def test_a_seal_is_known_again_only_for_its_text() -> None:
    assert is_genuine("hm", sign("hm"))
    assert not is_genuine("hmm", sign("hm"))
    assert not is_genuine("hm", None)
    assert (unseal(seal("hm")), unseal("forged"), unseal(None)) == ("hm", None, None)
