"""Texts that would be code, markup or names of something if a page took them for it."""

from __future__ import annotations

import random
from collections.abc import Iterator

HOSTILE = (
    "<script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "\"><svg onload=document.title='taken'>",
    "javascript:document.title='taken'",
    "</textarea></pre></li></main><h1>Log in again</h1>",
    "<style>*{display:none}</style><link rel=stylesheet href=//evil.example>",
    "{{constructor.constructor('document.title=1')()}} ${document.title} \u202e\u2066",
    "</script><iframe srcdoc=\"<script>top.document.title='taken'</script>\"></iframe>",
    "<form action=//evil.example><button autofocus onfocus=document.title='taken'>",
    "<base href=//evil.example><meta http-equiv=refresh content='0;url=//evil.example'>",
    "<math><mtext><table><mglyph><style><img src onerror=document.title='taken'>",
    "<a href='data:text/html,<script>opener.document.title=1</script>' target=_blank>look</a>",
    "__proto__ constructor toString [object Object] undefined null NaN",
    "&lt;script&gt;document.title='taken'&lt;/script&gt; &#60;b&#62; %3Cscript%3E",
    "<!--><script>document.title='taken'//--> <![CDATA[<b>]]> <?xml version='1.0'?>",
    "#/memory/../../api/erase?id=mem-1 /api/forget //evil.example \\\\evil.example",
)
_AROUND = (
    "", "'", '"', "`", ">", "'>", '">', "`>", "-->", "*/", "]]>", "</", "\\", "%", "&", "&#", "${",
    "{{", "\u2028", "\u202e", "\u200d", "\ufeff", "\r\n", "\t", "\u0301",
    "\U0001f469\u200d\U0001f680",
    "عربي", "東京", "a" * 300, "<" * 50, "0;", "//", "on", "=", " x=",
)  # fmt: skip
_CASES = (str, str.upper, str.title, str.swapcase)


def hostile_texts(count: int) -> Iterator[str]:
    """Yield so many of them, no two alike and always the same; the plain ones come first."""
    chance = random.Random(7)
    for number in range(count):
        text = HOSTILE[number % len(HOSTILE)]
        if number >= len(HOSTILE):
            text = chance.choice(_CASES)(text)
            if chance.random() < 0.3:
                text += chance.choice(HOSTILE)
            text = f"{chance.choice(_AROUND)}{text}{chance.choice(_AROUND)}"
        yield f"{text} {number}".strip()
