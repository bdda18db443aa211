"""Remove what a text contains besides its words: citation marks, emoji, Markdown and HTML."""

import re

from workbench.util.patterns import regex

_SOURCE = r"(?:docs?|documents?|sources?|refs?|references?|passages?|notes?|citations?|pp?)"
_NUMBER = rf"(?:{_SOURCE}[ :.]*)?#?\d{{1,4}}"
_NUMBERS = rf"{_NUMBER}(?:(?:\s*[,;\-\u2010-\u2013]\s*|\s+){_NUMBER}){{0,20}}"  # 2; 2, 3; 2-4
_URL = r"\((?:https?:|www\.|/|#)[^()\s]{0,500}\)"
_AUTHOR = r"[^\W\d_][\w'’-]*(?: et al\.?,?|(?: (?:and|&) [\w'’-]+)?,) \d{4}[a-z]?"
_BRACKETED = (  # [1, 2], [^note], [Doc 1], [Bo, 2020], [[1]](https://…), 【1†source】
    rf"\^?\[?\[\s*(?:\^[\w-]{{1,20}}|{_NUMBERS}|\d{{1,4}}†[^\[\]\n]{{0,40}}|{_SOURCE}|{_AUTHOR}"
    rf"|citation needed)\s*\]\]?\^?(?:{_URL})?"
    rf"|[\u3010\uff3b]\s*(?:{_NUMBERS}|\d[^\u3010\u3011\n]{{0,40}})\s*[\u3011\uff3d]"
)
# not "km²" or "10⁶"
_RAISED = r"(?:(?<=[^\W\d_]{3})|(?<=\b\d{4})|(?<=[.!?,;\"”)]))[¹²³⁰⁴-⁹]+"
CITATION = rf"(?i:\s?\((?:see|cf\.?|source:?|from)? ?(?:{_BRACKETED})\)|{_BRACKETED})|{_RAISED}"
EMOJI = (
    "(?:[0-9#*]\ufe0f?\u20e3|[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\ufe0f\u200d\u20e3"
    "\U000e0020-\U000e007f])"
)
_STRUCK = regex(r"~~[^~\n]{1,200}~~|!\[[^\[\]\n]{0,200}\]\([^()\s]{0,500}\)")
_LINK = regex(rf"\[([^\[\]\n]{{1,200}})\]{_URL}")
_MARKS = regex(
    rf"{CITATION}|{EMOJI}|:[a-z_]{{3,30}}:"
    r"|<(?:sup|cite)>\s*\[?\d{1,3}\]?\s*</(?:sup|cite)>"
    r"|</?(?:b|i|u|em|strong|mark|p|br|div|span|small|cite|code|pre|su[bp]|h\d|table|t[rdh]|[uo]l|li)"
    r"\s*/?>"
    r"|\\[()\[\]]"
)
_DELETED = regex(  # nothing stands in their place: "**M**arie"
    r"(?<!\s)\*+|\*+(?!\s)|`+|(?<!\w)_+|_+(?!\w)|(?<!\w)#+|[\u00ad\u200b\u200c\u2060\ufeff]"
)


def plain(text: str) -> str:
    """Return the words of a text without citation marks, emoji, Markdown, HTML and TeX brackets.

    The text of a link is kept. Struck-out text and images are removed.
    """
    text = _DELETED.sub("", _STRUCK.sub(" ", text))
    text = _MARKS.sub(" ", _LINK.sub(r"\1", text))
    # the look-behind keeps a long run of spaces linear
    return re.sub(r"(?<!\s)\s+(?=[.,;:!?](?:\s|$))", "", text)
