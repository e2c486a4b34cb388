"""Runs the HTML converter in a child process and kills it when it takes too long."""

from typing import Final, Literal

from fairlead_tools.limited_process import run_python
from fairlead_tools.registry.tool import CallFailed

OUTPUT_BYTES_MAX: Final = 16 * 1024 * 1024
_PROGRAM: Final = ("-I", "-m", "fairlead_tools.web.markdown")


async def convert_page(html: str, output_format: Literal["markdown", "text"]) -> str:
    """A page as markdown or as plain text. Raises CallFailed; a cancellation ends the child."""
    body = html.encode(errors="replace")
    end = await run_python(*_PROGRAM, output_format, body=body, output_bytes_max=OUTPUT_BYTES_MAX)
    if end.status != 0:
        raise CallFailed("The page cannot be converted; fetch it as html")
    return end.output.decode()
