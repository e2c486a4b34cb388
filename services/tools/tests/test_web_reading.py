"""HTML becomes text: what people see of a page, and nothing of what they do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_tools.web.markdown import readable


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("a  \n b<br>c", "a b\nc"),
        ("<h2>Title</h2>text", "## Title\n\ntext"),
        ("<ul><li>a<li>b</ul>", "- a\n- b"),
        ("<ol><li>a</li><li>b<ul><li>c</li></ul></li></ol>", "1. a\n2. b\n\n  - c"),
        ("<pre><code>x  =\n 1</code></pre>", "```\nx  =\n 1\n```"),
        ("say <code>x</code> <em>now</em>", "say `x` *now*"),
        ('see <a href="/x">this <b>page</b></a>.', "see [this **page**](/x)."),
        ('<a href="javascript:x()">y</a>', "y"),
        ('<img src="a.png" alt="A"><img src="data:x" alt="B">', "![A](a.png)B"),
        ("<blockquote>wise</blockquote>after", "> wise\n\nafter"),
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "a | b\n1 | 2"),
        ("<head><title>t</title></head><body>b", "b"),
        ("<head><title>t</title><body>b", "b"),
        ("a<script>if (a < b) {}</script>b<style>p{}</style><noscript>n</noscript>", "ab"),
        ("&lt;p&gt; &amp; &#233;", "<p> & é"),
        ("<svg><text>x</text></svg>y", "y"),
        ("</p></ul></a></blockquote></pre>fine", "fine"),
    ],
)
def test_markdown_says_what_the_page_says(html: str, markdown: str) -> None:
    """L-76."""
    assert readable(html, "markdown") == markdown


def test_text_is_without_marks() -> None:
    """L-76."""
    html = '<h1>T</h1><ul><li><a href="/x">one</a></li></ul><pre>a</pre><img src=x alt=pic>'

    assert readable(html, "text") == "T\n\n- one\n\na\n\npic"
    assert readable(html, "html") == html


@given(st.text(alphabet="<>/ abpreulioh1\"'=&;#!-\n", max_size=200))
def test_any_page_is_read(html: str) -> None:
    """L-76: whatever is unclosed or crossed in it."""
    for wanted in ("markdown", "text"):
        shown = readable(html, wanted)
        assert shown == shown.strip()
        assert "\n\n\n" not in shown or "```" in shown


def test_deep_nesting_is_no_trouble() -> None:
    """L-76: nor does it make the page longer than it is by much."""
    html = "<blockquote><ul><li>" * 5000 + "x"

    assert len(readable(html, "markdown")) < 2_000_000
