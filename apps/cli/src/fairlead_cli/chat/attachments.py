"""Files of this machine that go with a prompt: dropped, named, pasted, or from the clipboard."""

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairlead_cli.chat.view.plain_text import one_line
from fairlead_cli.errors import CommandError
from fairlead_cli.prompts.attached_files import read_bounded

CLIPBOARD_S: Final = 3.0
# Programs that write an image of the clipboard to their standard output.
_CLIPBOARDS: Final = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
)
_PNG: Final = b"\x89PNG"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file for the next prompt."""

    name: str
    content: bytes

    @property
    def label(self) -> str:
        return f"{one_line(self.name, 40)} ({_size(len(self.content))})"


def read_attachment(path: str) -> Attachment:
    """A file of this machine. Raises CommandError."""
    file = Path(path).expanduser()
    try:
        return Attachment(file.name, read_bounded(file))
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from error


def text_attachment(text: str, number: int) -> Attachment:
    """A long text that was pasted."""
    return Attachment(f"pasted-{number}.txt", text.encode(errors="replace"))


async def clipboard_image(number: int) -> Attachment | None:
    """The image in the clipboard; None if there is none, or if no program can read it."""
    for name, *arguments in _CLIPBOARDS:
        program = shutil.which(name)
        if program is None:
            continue
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            stdin=asyncio.subprocess.DEVNULL,
        )
        try:
            content, _ = await asyncio.wait_for(process.communicate(), CLIPBOARD_S)
        except TimeoutError:
            process.kill()
            await process.wait()
            continue
        if content.startswith(_PNG):
            return Attachment(f"clipboard-{number}.png", content)
    return None


def _size(count: int) -> str:
    return f"{count / 1024:.0f} KiB" if count >= 1024 else f"{count} bytes"  # noqa: PLR2004
