"""Prompts from callers, prompts in the log, and receipts."""

import pytest
from pydantic import ValidationError

from fairlead_schema.commands.input import PromptBody
from fairlead_schema.prompt import (
    TEXT_LENGTH_MAX,
    AgentMention,
    Prompt,
    PromptFile,
    PromptInput,
    Receipt,
    TextSpan,
)

SOURCE = TextSpan(start=0, end=7, text="@app.py")


def test_a_prompt_steers_and_resumes_unless_told_otherwise() -> None:
    body = PromptBody.model_validate({"prompt": {"text": "hi"}})

    assert (body.delivery, body.resume, body.id) == ("steer", True, None)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"prompt": "hi"},
        {"prompt": {}},
        {"prompt": {"text": 7}},
        {"prompt": {"text": "hi", "files": [{"uri": ""}]}},
        {"prompt": {"text": "hi", "files": [{"name": "a"}]}},
        {"prompt": {"text": "hi", "agents": [{}]}},
        {"prompt": {"text": "hi", "files": [{"uri": "a", "source": {"start": 1}}]}},
        {"prompt": {"text": "hi"}, "delivery": "now"},
        {"prompt": {"text": "hi"}, "id": "ses_1"},
        {"prompt": {"text": "hi"}, "id": "msg_a.b"},
    ],
)
def test_a_body_that_does_not_fit_is_refused(body: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        PromptBody.model_validate(body)


def test_the_text_of_a_prompt_is_bounded() -> None:
    assert len(PromptInput(text="x" * TEXT_LENGTH_MAX).text) == TEXT_LENGTH_MAX
    with pytest.raises(ValidationError, match="at most"):
        PromptInput(text="x" * (TEXT_LENGTH_MAX + 1))


def test_an_empty_prompt_is_a_prompt() -> None:
    assert PromptInput(text="").wire() == {"text": ""}


def test_a_resolved_prompt_keeps_what_was_attached() -> None:
    prompt = Prompt(
        text="@app.py",
        files=(PromptFile(uri="file:///app.py", mime="text/x-python", source=SOURCE),),
        agents=(AgentMention(name="review"),),
    )

    assert prompt.wire() == {
        "text": "@app.py",
        "files": [
            {
                "uri": "file:///app.py",
                "mime": "text/x-python",
                "source": {"start": 0, "end": 7, "text": "@app.py"},
            }
        ],
        "agents": [{"name": "review"}],
    }
    assert Prompt.model_validate(prompt.wire()) == prompt


def test_a_receipt_shows_its_promotion_only_once_there_is_one() -> None:
    receipt = Receipt(
        admitted_seq=2,
        id="msg_1",
        session_id="ses_1",
        prompt=Prompt(text="hi"),
        delivery="steer",
        time_created=1000,
    )

    assert receipt.wire() == {
        "admittedSeq": 2,
        "id": "msg_1",
        "sessionID": "ses_1",
        "prompt": {"text": "hi"},
        "delivery": "steer",
        "timeCreated": 1000,
    }
    assert receipt.model_copy(update={"promoted_seq": 5}).wire()["promotedSeq"] == 5


def test_the_options_of_one_prompt_are_keys_of_the_prompt() -> None:
    """P-18: system text, model, agent, tools and the schema of the answer."""
    options = {
        "system": "Answer in French.",
        "model": {"id": "fast", "providerID": "sim"},
        "agent": "plan",
        "tools": ["read"],
        "schema": {"type": "object"},
    }

    prompt = PromptInput.model_validate({"text": "hi", **options})

    assert prompt.has_options
    assert prompt.wire() == {"text": "hi", **options}
    assert not PromptInput(text="hi").has_options
    assert PromptInput.model_validate({"text": "hi", "tools": []}).has_options


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ({"prompt": {"text": "hi"}, "system": "x"}, "prompt.system is meant"),
        ({"prompt": {"text": "hi"}, "schema": {}}, "prompt.schema is meant"),
        ({"prompt": {"text": "hi"}, "format": {}}, "prompt.schema is meant"),
        ({"prompt": {"text": "hi"}, "Delivery": "queue"}, "delivery is meant"),
        ({"prompt": {"text": "hi", "tool": ["read"]}}, "tools is meant"),
        ({"prompt": {"text": "hi", "output_schema": {}}}, "schema is meant"),
        ({"prompt": {"text": "hi", "systemPrompt": "x"}}, "system is meant"),
        ({"prompt": {"text": "hi", "file": []}}, "files is meant"),
    ],
)
def test_a_mistaken_key_is_refused_with_the_key_that_is_meant(
    body: dict[str, object], hint: str
) -> None:
    """D17: nobody believes that an option counts which nobody reads."""
    with pytest.raises(ValidationError, match=hint):
        PromptBody.model_validate(body)


def test_keys_of_other_clients_are_ignored() -> None:
    """WIRE: extra keys of a client of the same format do no harm."""
    body = {
        "prompt": {"text": "hi", "metadata": {}, "noReply": True, "colour": "red"},
        "messageID": "msg_1",
        "noReply": True,
        "traceparent": "00-1",
    }

    assert PromptBody.model_validate(body).prompt == PromptInput(text="hi")
