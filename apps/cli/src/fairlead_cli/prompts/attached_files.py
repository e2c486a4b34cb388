"""Files of this machine as attachments: each goes to the store of its session before the prompt."""

from errno import EFBIG
from pathlib import Path
from typing import Final

from fairlead_cli.errors import UsageError
from fairlead_client.async_client.client import AsyncFairlead
from fairlead_schema.ids import SessionId
from fairlead_schema.prompt import FileInput

BYTES_MAX: Final = 20 * 1024 * 1024


def read_files(names: list[str]) -> dict[str, bytes]:
    """The content of each file. Nothing is sent before all can be read. Raises UsageError."""
    return {name: _read(Path(name)) for name in names}


async def upload_files(
    client: AsyncFairlead, session_id: SessionId, files: dict[str, bytes]
) -> list[FileInput]:
    """Store every file, and name it for the prompt. Equal content is stored once."""
    inputs = []
    for name, content in files.items():
        stored = await client.upload(session_id, content, name=Path(name).name)
        inputs.append(FileInput(uri=stored["uri"], name=Path(name).name))
    return inputs


def read_bounded(path: Path) -> bytes:
    """A file that is no larger than an attachment may be. Devices and pipes may have no end. Raises OSError."""
    with path.open("rb") as file:
        content = file.read(BYTES_MAX + 1)
    if len(content) > BYTES_MAX:
        raise OSError(EFBIG, f"it has more than {BYTES_MAX >> 20} MiB, the most of an attachment")
    return content


def _read(path: Path) -> bytes:
    try:
        content = read_bounded(path)
    except OSError as error:
        raise UsageError(f"--file {path}: {error.strerror}") from error
    if not content:
        raise UsageError(f"--file {path}: the file is empty")
    return content
