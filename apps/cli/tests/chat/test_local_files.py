"""Files of this machine: attachments, and the prompts that are kept."""

from pathlib import Path

import pytest

from fairlead_cli.chat.attachment_tray import AttachmentTray
from fairlead_cli.chat.attachments import clipboard_image
from fairlead_cli.chat.history_file import history_path, load_prompts, save_prompt
from fairlead_cli.errors import CommandError


def test_prompts_are_kept_for_their_person_alone(tmp_path: Path) -> None:
    path = history_path({"XDG_STATE_HOME": str(tmp_path)})
    for prompt in ("one", "two\nlines"):
        save_prompt(path, prompt)

    assert load_prompts(path) == ["one", "two\nlines"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_history_that_is_broken_or_missing_is_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "history"
    assert load_prompts(path) == []

    path.write_bytes(b'"good"\n{broken\n\xff\n17\n')
    assert load_prompts(path) == ["good"]
    save_prompt(tmp_path / "history" / "inside-a-file", "lost")


def test_the_tray_gives_everything_to_one_prompt_and_takes_it_back(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"x" * 2048)
    tray = AttachmentTray()
    tray.add_file(str(tmp_path / "a.png"))
    tray.add_text("long")

    assert tray.labels == ["a.png (2 KiB)", "pasted-1.txt (4 bytes)"]
    taken = tray.take()
    assert not tray
    tray.put_back(taken)
    assert len(tray) == 2


def test_a_file_that_cannot_be_attached_says_why(tmp_path: Path) -> None:
    tray = AttachmentTray()
    with pytest.raises(CommandError, match=r"cannot be read: No such file"):
        tray.add_file(str(tmp_path / "missing.png"))

    with (tmp_path / "big").open("wb") as big:
        big.truncate(20 * 1024 * 1024 + 1)
    for endless in (tmp_path / "big", "/dev/zero"):
        with pytest.raises(CommandError, match="more than 20 MiB"):
            tray.add_file(str(endless))


async def test_an_image_in_the_clipboard_is_read_by_the_program_that_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await clipboard_image(1) is None
    with pytest.raises(CommandError, match="no image in the clipboard"):
        await AttachmentTray().add_image()

    program = tmp_path / "xclip"
    program.write_text("#!/bin/sh\nprintf '\\211PNG rest'\n")
    program.chmod(0o755)
    image = await clipboard_image(1)

    assert image is not None
    assert (image.name, image.content) == ("clipboard-1.png", b"\x89PNG rest")
