"""What is long or wide stays in its place, on every width of a window."""

import json
import re

import pytest
from playwright.async_api import ViewportSize, expect

from fairlead_testing.console_browser import WITHOUT_CHROMIUM, Console
from fairlead_testing.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
    WITHOUT_CHROMIUM,
]
WHOLE_ITEM = re.compile(r"^item \d+ bold$")
TABLET: ViewportSize = {"width": 820, "height": 860}
WATCH_BLOCKS = """async () => {
  const places = [];
  for (let live = true, began = false; live; ) {
    await new Promise(requestAnimationFrame);
    const prose = document.querySelector(".assistant .prose");
    if (!prose) continue;
    began ||= prose.classList.contains("live");
    live = !began || prose.classList.contains("live");
    const top = prose.getBoundingClientRect().top;
    [...prose.querySelectorAll(":scope > :not(.tail), :scope > .tail > *")].forEach((block, at) => {
      const now = block.getBoundingClientRect().top - top;
      places[at] ??= { block: block.tagName, first: now, last: now };
      places[at].first = Math.min(places[at].first, now);
      places[at].last = Math.max(places[at].last, now);
    });
  }
  return places;
}"""
"""Where each block of a growing answer was highest and lowest."""


async def start(up: Stack, prompt: str) -> str:
    session_id = await up.session()
    body = {"prompt": {"text": prompt}}
    (await up.http.post(f"/api/session/{session_id}/prompt", json=body)).raise_for_status()
    return session_id


async def test_an_answer_without_a_blank_does_not_widen_its_question(
    up: Stack, console: Console
) -> None:
    options = [{"label": "<b>" + "b" * 300, "description": "c" * 500}]
    question = {"question": "Which " + "q" * 300, "header": "H", "options": options}
    arguments = json.dumps({"questions": [question]})
    await console.open(await start(up, f"Go [[sim: tool=question args='{arguments}' ; answer=ok]]"))
    card = console.page.locator(".ask")
    await expect(card).to_contain_text("bbbb")

    assert await card.evaluate("(card) => card.scrollWidth <= card.clientWidth")
    assert await console.page.locator(".ask b").count() == 0


async def test_a_wide_table_scrolls_instead_of_breaking_its_words(
    up: Stack, console: Console
) -> None:
    row = "|" + "|".join(f"column{number}" for number in range(40)) + "|"
    rule = "|" + "|".join("---" for _ in range(40)) + "|"
    await console.open(await start(up, f'Go [[sim: answer="{row}\n{rule}\n{row}"]]'))
    head = console.page.locator(".assistant th").first
    await expect(head).to_have_text("column0")

    box = await head.bounding_box()

    assert box is not None
    assert box["height"] < 40, "one line"
    assert await console.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


async def test_a_list_that_is_cut_ends_with_a_whole_line(up: Stack, console: Console) -> None:
    lines = "\n".join(f"- item {number} **bold**" for number in range(3000))
    await console.open(await start(up, f'Go [[sim: answer="{lines}"]]'))
    more = console.page.locator(".assistant button", has_text="more characters")
    await expect(more).to_be_visible()
    await expect(console.page.locator(".assistant li").last).to_have_text(WHOLE_ITEM)

    await more.click()

    await expect(console.page.locator(".assistant .plain")).to_contain_text("item 2999")


async def test_the_side_covers_the_session_on_a_tablet_and_not_its_head(
    up: Stack, console: Console
) -> None:
    page = console.page
    await console.open(await up.session())
    await expect(page.locator(".side")).to_be_visible()
    await page.set_viewport_size(TABLET)
    await expect(page.locator(".side")).to_be_hidden()

    await page.get_by_label("Side panel").click()

    side, head = (
        await page.locator(".side").bounding_box(),
        await page.locator(".session-head").bounding_box(),
    )
    assert side is not None
    assert head is not None
    assert side["y"] == head["y"] + head["height"]
    assert (side["x"], side["width"]) == (0, TABLET["width"])


async def test_nothing_that_stands_there_moves_while_an_answer_comes(
    up: Stack, console: Console
) -> None:
    answer = (
        "## A title\n\nWords.\n\n### Another one\n\n- one\n- two\n\n> quoted\n\n"
        "```py\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n#### Last\n\nThe end."
    )
    session_id = await up.session()
    await console.open(session_id)
    watched = console.page.evaluate(WATCH_BLOCKS)
    prompt = f'Go [[sim: answer="{answer}" chunks=120 delay_ms=30]]'
    body = {"prompt": {"text": prompt}}
    (await up.http.post(f"/api/session/{session_id}/prompt", json=body)).raise_for_status()

    places = await watched

    assert len(places) > 7, "every block was seen"
    assert [place for place in places if place["last"] - place["first"] > 1] == []
    gaps = await console.page.evaluate(
        """() => {
          const [title, words] = document.querySelectorAll(".assistant .prose > *");
          return words.getBoundingClientRect().top - title.getBoundingClientRect().bottom;
        }"""
    )
    assert gaps <= 8, "a title stands near what it is the title of"


@pytest.mark.parametrize("answer", ["42", "Sum:\n\n7"])
async def test_an_answer_that_ends_like_the_mark_of_a_list_is_shown(
    up: Stack, console: Console, answer: str
) -> None:
    session_id = await up.session()
    await console.open(session_id)
    await console.write(f'Go [[sim: answer="{answer}" chunks=2 delay_ms=200]]')

    await expect(console.page.locator(".session-head .state")).to_have_text("Idle")
    await expect(console.page.locator(".assistant .text p").last).to_have_text(answer[-2:].strip())
