"""Hosted content of the Gemini API, by the name of its part."""

from typing import Final

from fairlead_session.hosted.rule import HostedRule, Table, new_table, replace_texts


def _shorten_output(value: object, note: str) -> object:
    return replace_texts(value, note, "output")


TABLE: Final[Table] = new_table(
    HostedRule("codeExecutionResult", "call", shorten=_shorten_output),
    HostedRule("toolResponse", "call"),
    HostedRule("inlineData", "block", to_others="note"),
    HostedRule("fileData", "block", to_others="note"),
    HostedRule("thoughtSignature", "reasoning", to_others="dropped"),
    HostedRule("textSignature", "text", to_others="dropped"),
    HostedRule("groundingMetadata", "step", to_same="never", to_others="dropped"),
    HostedRule("citationMetadata", "step", to_same="never", to_others="dropped"),
    HostedRule("urlContextMetadata", "step", to_same="never", to_others="dropped"),
)
