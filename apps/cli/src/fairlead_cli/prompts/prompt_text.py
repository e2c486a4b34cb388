"""The text and the options of a prompt, from arguments, files and standard input."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from fairlead_cli.errors import UsageError
from fairlead_schema.catalog import ModelRef
from fairlead_schema.ids import MessageId
from fairlead_schema.prompt import TEXT_LENGTH_MAX, PromptOptions

STDIN: Final = "-"
# A character has at most four bytes. Standard input may have no end.
STDIN_BYTES_MAX: Final = 4 * TEXT_LENGTH_MAX


def read_text(words: list[str]) -> str:
    """The prompt. `-` stands for standard input, and so does nothing at all. Raises UsageError."""
    if not words and sys.stdin.isatty():
        raise UsageError("say something: fairlead prompt TEXT, or pipe the text into it")
    if words.count(STDIN) > 1:
        raise UsageError("standard input can be read once: write one -")
    texts = [read_stdin() if word == STDIN else word for word in words or [STDIN]]
    text = "\n\n".join(text for text in texts if text.strip())
    if not text:
        raise UsageError("the prompt is empty: say something")
    if len(text) > TEXT_LENGTH_MAX:
        raise UsageError(
            f"the prompt has {len(text):,} characters and may have {TEXT_LENGTH_MAX:,}:"
            " attach the long part with --file"
        )
    return text


def read_stdin() -> str:
    """Standard input as text. Raises UsageError if it is none."""
    raw = sys.stdin.buffer.read(STDIN_BYTES_MAX + 1)
    if len(raw) > STDIN_BYTES_MAX:
        raise UsageError("standard input is too long for a prompt: attach it with --file")
    try:
        return raw.decode().rstrip("\n")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"standard input is not UTF-8 (byte {error.start + 1:,}): convert it, for example with"
            " iconv, or attach it with --file"
        ) from error


def read_options(args: argparse.Namespace) -> PromptOptions:
    """The options of this prompt alone. A new session gets the model and the agent itself."""
    selected = None if args.tools is None else [name.strip() for name in args.tools.split(",")]
    options = {
        "system": args.system,
        "model": parse_model(args.model) if args.session else None,
        "agent": args.agent if args.session else None,
        "tools": None if selected is None else [name for name in selected if name],
        "schema": None if args.schema is None else _read_schema(Path(args.schema)),
    }
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return PromptOptions.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"--{first['loc'][0]}: {first['msg']}") from error


def parse_model(text: str | None) -> ModelRef | None:
    """`provider/model` as a reference. Raises UsageError."""
    if text is None:
        return None
    provider_id, slash, model_id = text.partition("/")
    if not (provider_id and slash and model_id):
        raise UsageError(f"--model {text}: write it as PROVIDER/MODEL, for example sim/fast")
    return ModelRef(provider_id=provider_id, id=model_id)


def parse_message_id(text: str | None) -> MessageId | None:
    """The id of a prompt that may be repeated. Raises UsageError."""
    try:
        return None if text is None else TypeAdapter(MessageId).validate_python(text)
    except ValidationError as error:
        raise UsageError(
            f"--id {text}: write msg_ and then up to 120 letters, digits, _ or -"
        ) from error


def _read_schema(file: Path) -> Any:  # noqa: ANN401 - any JSON; the options refuse all but an object
    try:
        return json.loads(file.read_text())
    except OSError as error:
        raise UsageError(f"--schema {file}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--schema {file}: not JSON: {error}") from error
