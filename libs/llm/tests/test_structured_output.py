"""Structured output in the request of each protocol: the provider's own mode."""

from dataclasses import replace
from typing import Any

import pytest

from fairlead_llm.anthropic_messages import request as anthropic
from fairlead_llm.gemini import request as gemini
from fairlead_llm.openai_chat import request as chat
from fairlead_llm.openai_responses import request as responses
from fairlead_schema.provider.request import ModelRequest, TextPart, UserTurn

SCHEMA = {"type": "object", "properties": {"port": {"type": "string"}}}
REQUEST = ModelRequest("m", turns=(UserTurn((TextPart("hi"),)),), output_schema=SCHEMA)


def test_responses_has_a_format_of_the_text_beside_other_options() -> None:
    """P-17: it is not strict, because a caller need not know the rules of strict schemas."""
    body = responses.body(replace(REQUEST, options={"text": {"verbosity": "low"}}))

    format_ = {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": False}
    assert body["text"] == {"verbosity": "low", "format": format_}


def test_chat_has_a_response_format() -> None:
    schema = {"name": "answer", "schema": SCHEMA, "strict": False}
    assert chat.body(REQUEST)["response_format"] == {"type": "json_schema", "json_schema": schema}


def test_gemini_has_a_schema_in_its_configuration() -> None:
    body = gemini.body(replace(REQUEST, options={"generationConfig": {"seed": 1}}))

    assert body["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": SCHEMA,
        "seed": 1,
    }


def test_anthropic_has_a_format_beside_the_effort() -> None:
    body = anthropic.body(replace(REQUEST, options={"output_config": {"effort": "low"}}))

    format_ = {"type": "json_schema", "schema": SCHEMA}
    assert body["output_config"] == {"effort": "low", "format": format_}


@pytest.mark.parametrize("protocol", [anthropic, gemini, chat, responses])
def test_a_free_answer_names_no_format(protocol: Any) -> None:  # noqa: ANN401 - a module
    body = protocol.body(replace(REQUEST, output_schema=None))

    assert not body.keys() & {"text", "response_format", "generationConfig", "output_config"}
