"""Turns HTML into markdown or plain text, in a process of its own that can be killed.

The converter is a native library: it holds the interpreter for as long as it works, and a hostile
page can make it use much memory. Run as a program it reads a page from its standard input:

    python -m fairlead_tools.web.markdown markdown|text
"""

import re
import sys
from typing import Final, Literal, TypeAlias

from html_to_markdown import (
    ConversionError,
    ConversionOptions,
    InlineDataMedia,
    PreprocessingOptions,
    WarningKind,
    convert,
)

from fairlead_tools.process_limits import limit_this_process

Format: TypeAlias = Literal["markdown", "text"]

DEPTH_MAX: Final = 200
MEMORY_BYTES_MAX: Final = 1 << 30
CPU_S_MAX: Final = 60
# The exit status of a page that the library cannot convert.
REFUSED: Final = 2
TOO_DEEP: Final = f"(Parts nested deeper than {DEPTH_MAX} elements are left out.)"

_OUTPUT: Final = {"markdown": "markdown", "text": "plain"}
# Scripts, styles and templates the library leaves out itself.
_HIDDEN: Final = ("svg", "iframe", "object", "embed", "noscript")
# `[^<>]` keeps an unclosed tag from being scanned again and again.
_SCRIPT_LINK: Final = re.compile(r"<a\b[^<>]*\bhref\s*=\s*[\"']?javascript:[^<>]*>", re.IGNORECASE)
_PREFORMATTED: Final = re.compile(r"(<(/?)(?:pre|textarea)\b)", re.IGNORECASE)
_BLANK_LINES: Final = re.compile(r"\n\s+")
_MANY_BLANKS: Final = re.compile(r"\n{3,}")


def to_markdown(html: str, output_format: Format) -> str:
    """A page as markdown or as plain text. Raises ConversionError."""
    result = convert(_prepare(html), _options(output_format))
    text = "\n".join(line.rstrip() for line in (result.content or "").split("\n"))
    if "```" not in text:
        text = _MANY_BLANKS.sub("\n\n", text)
    too_deep = any(warning.kind == WarningKind.DEPTH_LIMIT_EXCEEDED for warning in result.warnings)
    return f"{text.strip()}\n\n{TOO_DEEP}".strip() if too_deep else text.strip()


def _options(output_format: Format) -> ConversionOptions:
    return ConversionOptions(
        output_format=_OUTPUT[output_format],
        # The default would drop navigation and forms, which may be what the model looks for.
        preprocessing=PreprocessingOptions(enabled=False),
        exclude_selectors=list(_HIDDEN),
        inline_data_media=InlineDataMedia.ALT_TEXT_ONLY,
        max_depth=DEPTH_MAX,
        extract_metadata=False,
        expand_abbreviations=False,
        autolinks=False,
    )


def _prepare(html: str) -> str:
    """The page without what the library would get wrong.

    It keeps `javascript:` links, reads a blank line inside a paragraph as the end of it, and shows
    the text of a script or style that is never closed.
    """
    pieces = _PREFORMATTED.split(_SCRIPT_LINK.sub("<a>", html))
    out, preformatted = [_BLANK_LINES.sub("\n", pieces[0])], False
    for tag, slash, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        preformatted = not slash
        out += [tag, text if preformatted else _BLANK_LINES.sub("\n", text)]
    return "".join((*out, "</script></style>"))


def main(output_format: Format) -> int:
    """Convert standard input to standard output, within limits."""
    limit_this_process(memory_bytes=MEMORY_BYTES_MAX, cpu_s=CPU_S_MAX)
    try:
        text = to_markdown(sys.stdin.buffer.read().decode(errors="replace"), output_format)
    except (ConversionError, ValueError, MemoryError):
        return REFUSED
    sys.stdout.buffer.write(text.encode(errors="replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main("text" if sys.argv[1] == "text" else "markdown"))
