"""Files in the console: pasted, dropped, shown again, and outputs that are read as a whole."""

import json

import pytest
from playwright.async_api import expect

from fairlead_testing.console_browser import WITHOUT_CHROMIUM, Console
from fairlead_testing.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
    WITHOUT_CHROMIUM,
]
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
HAND_OVER = """([kind, name, type, content]) => {
  const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], name, { type }));
  const event = kind === "paste" ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
    : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
  document.querySelector(kind === "paste" ? ".composer textarea" : ".composer").dispatchEvent(event);
}"""


async def test_files_come_by_paste_and_by_drop_and_stand_in_the_transcript(
    up: Stack, console: Console
) -> None:
    session_id = await up.session()
    await console.open(session_id)
    page = console.page
    await page.evaluate(HAND_OVER, ["paste", "dot.png", "image/png", PICTURE])
    await page.evaluate(HAND_OVER, ["drop", "\u202enotes.txt", "text/plain", "aGVsbG8="])
    files = page.locator(".attachments li")
    await expect(files).to_have_count(2)
    await expect(files.last).to_contain_text("U+202E")
    await expect(page.locator(".attachments", has_text="…")).to_have_count(0)
    await page.evaluate(HAND_OVER, ["paste", "third.txt", "text/plain", "eA=="])
    await page.get_by_label("Remove third.txt").click()
    await expect(files).to_have_count(2)

    await console.write("Look at these [[sim: answer=Seen.]]")

    await expect(page.locator(".assistant")).to_contain_text("Seen.")
    picture = page.locator(".user img.preview")
    await expect(picture).to_be_visible()
    assert (await picture.get_attribute("src") or "").startswith(("data:", "blob:"))
    await expect(page.locator(".user")).to_contain_text("notes.txt")
    await console.keep_picture("attachments")
    messages = await up.messages(session_id)
    assert len(messages[0]["files"]) == 2


async def test_a_file_that_is_too_large_is_refused_with_its_name(
    up: Stack, console: Console
) -> None:
    await console.open(await up.session())
    page = console.page
    await page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File([new Uint8Array(40 * 1024 * 1024)], "huge.bin", { type: "application/octet-stream" }));
          document.querySelector(".composer").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }"""
    )

    await expect(page.locator(".toast.error")).to_contain_text("huge.bin")
    await expect(page.locator(".attachments li")).to_have_count(0)


async def test_a_line_of_a_megabyte_neither_breaks_nor_blocks_the_page(
    up: Stack, console: Console
) -> None:
    session_id = await up.session()
    command = json.dumps({"command": "printf %01048576d 0"})
    body = {"prompt": {"text": f"Go [[sim: tool=bash args='{command}' ; answer=Printed.]]"}}
    (await up.http.post(f"/api/session/{session_id}/prompt", json=body)).raise_for_status()
    await console.open(session_id)
    page = console.page
    await expect(page.locator(".assistant").last).to_contain_text("Printed.")
    await page.click(".tool > summary")
    await page.get_by_text("Load the whole output").click()
    await page.locator(".whole").get_by_text("more characters").click()

    await page.wait_for_function(
        "() => document.querySelector('.whole').textContent.includes('0'.repeat(1048576))"
    )
    body = {"prompt": {"text": f"Go [[sim: answer='{'y' * 400_000}' chunks=20]]"}}
    (await up.http.post(f"/api/session/{session_id}/prompt", json=body)).raise_for_status()
    await expect(page.locator(".assistant").last).to_contain_text("yyyy")
    await page.fill(".composer textarea", "I can still write")
    assert await page.input_value(".composer textarea") == "I can still write"
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    await console.keep_picture("megabyte-line")


async def test_a_bounded_output_is_loaded_as_a_whole(up: Stack, console: Console) -> None:
    session_id = await up.session()
    command = json.dumps({"command": "seq 1 30000"})
    body = {"prompt": {"text": f"Go [[sim: tool=bash args='{command}' ; answer=Counted.]]"}}
    await up.http.post(f"/api/session/{session_id}/prompt", json=body)
    await console.open(session_id)
    page = console.page
    await expect(page.locator(".assistant").last).to_contain_text("Counted.")
    await page.click(".tool > summary")

    await page.get_by_text("Load the whole output").click()

    await page.locator(".whole").get_by_text("more characters").click()
    await expect(page.locator(".whole")).to_contain_text("29999\n30000")
    await expect(page.get_by_text("Load the whole output")).to_have_count(0)
    await console.keep_picture("whole-output")
