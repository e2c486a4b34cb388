"""The conversion of HTML to text keeps the visible content only."""

import asyncio
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_tools.registry.tool import CallFailed
from fairlead_tools.web import converter_process
from fairlead_tools.web.converter_process import convert_page
from fairlead_tools.web.markdown import DEPTH_MAX, TOO_DEEP, to_markdown

HOSTILE = {
    "crossed": "<p><b>",
    "divs": "<div>",
    "lists": "<blockquote><ul><li>",
    "links": '<a href="x">',
    "open quotes": '<a href="',
    "open comments": "<!--",
    "open sections": "<![CDATA[",
    "script links": '<a href="javascript:',
    "preformatted": "<pre>",
    "tables": "<table><tr><td>",
    "angles": "<",
    "entities": "&#",
    "spaces": " \n",
    "headings": "<h1>",
}


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("a  \n b<br>c", "a\nb\nc"),
        ("<p>a\n\n   b</p>", "a\nb"),
        ("<h2>Title</h2>text", "## Title\n\ntext"),
        ("<ul><li>a<li>b</ul>", "- a\n- b"),
        ("<ol><li>a</li><li>b<ul><li>c</li></ul></li></ol>", "1. a\n2. b\n   - c"),
        ("<pre><code>x  =\n\n 1</code></pre>", "```\nx  =\n\n 1\n```"),
        ("say <code>x</code> <em>now</em>", "say `x` *now*"),
        ('see <a href="/x">this <b>page</b></a>.', "see [this **page**](/x)."),
        ('<a href="javascript:x()">y</a>', "y"),
        ('<img src="a.png" alt="A"> <img src="data:x" alt="B">', "![A](a.png) B"),
        ("<blockquote>wise</blockquote>after", "> wise\n\nafter"),
        (
            "<table><tr><th>a<th>b<tr><td>1<td>2</table>",
            "| a | b |\n| --- | --- |\n| 1 | 2 |",
        ),
        ("<head><title>t</title></head><body>b", "b"),
        ("<head><title>t</title><body>b", "b"),
        ("a<script>if (a < b) {}</script>b<style>p{}</style><noscript>n</noscript>", "ab"),
        ("a<script>never closed", "a"),
        ("a<style>never closed", "a"),
        ("<nav>menu</nav><form>name <button>Go</button></form>", "menu\n\nname Go"),
        ("&lt;p&gt; &amp; &#233;", "<p> & é"),
        ("<svg><text>x</text></svg>y", "y"),
        ("<iframe src=x>no</iframe><template>t</template>y", "y"),
        ("</p></ul></a></blockquote></pre>fine", "fine"),
    ],
)
def test_markdown_says_what_the_page_says(html: str, markdown: str) -> None:
    """L-76."""
    assert to_markdown(html, "markdown") == markdown


def test_text_is_without_marks() -> None:
    """L-76."""
    html = '<h1>T</h1><ul><li><a href="/x">one</a></li></ul><pre>a</pre><img src=x alt=pic>'

    assert to_markdown(html, "text") == "T\n\n- one\n\na\n\npic"
    assert to_markdown("a<script>b</script><style>c</style>d", "text") == "a d"


@given(st.text(alphabet="<>/ abpreulioh1\"'=&;#!-\n", max_size=200))
@settings(deadline=None)
def test_any_page_is_read(html: str) -> None:
    """L-76: unclosed and crossed tags are no error."""
    for format_ in ("markdown", "text"):
        text = to_markdown(html, format_)
        assert text == text.strip()
        assert "\n\n\n" not in text or "```" in text or "<pre" in html


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_hostile_markup_takes_time_in_proportion_to_its_size(piece: str) -> None:
    """L-76: 180 KB of nested markup once took eight seconds."""
    html = piece * (180_000 // len(piece))

    start = time.process_time()
    text = to_markdown(html, "markdown")

    assert time.process_time() - start < 3
    assert len(text) < 2_000_000


def test_deep_nesting_is_no_trouble() -> None:
    """L-76: content nested too deep is left out, and the text says so."""
    html = "<div>" * (DEPTH_MAX + 10) + "deep" + "</div>" * (DEPTH_MAX + 10) + "shallow"

    assert to_markdown(html, "markdown") == f"shallow\n\n{TOO_DEEP}"


async def test_a_page_is_converted_in_a_process_of_its_own() -> None:
    """L-76."""
    page = "<p>é " + "word " * 100_000

    assert await convert_page("<h1>T</h1>é\ud800", "markdown") == "# T\n\né?"
    assert (await convert_page(page, "text")).startswith("é word")


async def test_a_page_that_needs_too_much_memory_or_grows_too_long_is_refused() -> None:
    """L-76: a table may claim far more cells than it has."""
    cells = "<table>" + "<tr><td colspan=1000 rowspan=65534>x" * 20_000

    with pytest.raises(CallFailed, match=r"cannot be converted|longer than"):
        await convert_page(cells, "markdown")


async def test_a_converter_that_fails_or_takes_too_long_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """L-76, L-79."""
    monkeypatch.setattr(converter_process, "_PROGRAM", ("-c", "raise SystemExit(2)"))
    with pytest.raises(CallFailed, match="cannot be converted"):
        await convert_page("<p>" * 100_000, "markdown")

    monkeypatch.setattr(converter_process, "_PROGRAM", ("-c", "while True: pass"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await convert_page("<p>" * 100_000, "markdown")
