"""The files that go with the next prompt."""

from collections.abc import Sequence

from fairlead_cli.chat.attachments import (
    Attachment,
    clipboard_image,
    read_attachment,
    text_attachment,
)
from fairlead_cli.chat.view.pasted import DroppedFiles, LongText, Pasted
from fairlead_cli.errors import CommandError


class AttachmentTray:
    """Collects attachments until a prompt takes them."""

    def __init__(self) -> None:
        self._attachments: list[Attachment] = []
        self._pasted = 0

    def __len__(self) -> int:
        return len(self._attachments)

    @property
    def labels(self) -> list[str]:
        """The name and the size of each."""
        return [attachment.label for attachment in self._attachments]

    def take(self) -> list[Attachment]:
        """All of them. The tray is empty then."""
        taken, self._attachments = self._attachments, []
        return taken

    def put_back(self, attachments: list[Attachment]) -> None:
        """Keep what a prompt could not take along."""
        self._attachments = [*attachments, *self._attachments]

    def add_pasted(self, pasted: Pasted) -> list[str]:
        """Add what was pasted. Returns the paths that are none of this machine: they are text."""
        if isinstance(pasted, LongText):
            self.add_text(pasted.text)
        return [] if not isinstance(pasted, DroppedFiles) else self._add_dropped(pasted.paths)

    def _add_dropped(self, paths: Sequence[str]) -> list[str]:
        unknown: list[str] = []
        for path in paths:
            try:
                self.add_file(path)
            except CommandError:
                unknown.append(path)
        return unknown

    def add_text(self, text: str) -> None:
        """Add a long text that was pasted."""
        self._pasted += 1
        self._attachments.append(text_attachment(text, self._pasted))

    def add_file(self, path: str) -> None:
        """Add a file of this machine. Raises CommandError."""
        self._attachments.append(read_attachment(path))

    async def add_image(self) -> None:
        """Add the image in the clipboard. Raises CommandError."""
        image = await clipboard_image(self._pasted + 1)
        if image is None:
            raise CommandError(
                "There is no image in the clipboard that this program can read: drop the file on the"
                " terminal, or name it with /attach FILE."
            )
        self._pasted += 1
        self._attachments.append(image)
