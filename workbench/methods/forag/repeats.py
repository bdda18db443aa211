"""What a text says again: two that differ in writing or in what they cite alone are the same;
two that are true may differ in the order of their words, too, and in words that say nothing."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from workbench.text.normal_form import CJK, normalise
from workbench.text.outline import uncited
from workbench.text.sections import unmarked

# and those of category Cf
_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0]")
# Words that leave true what they stand in, as `normalise` writes them: they stress it or join it to
# what was said before.
_FILLERS = re.compile(
    r"(?<!\S)(?:indeed|really|truly|actually|certainly|surely|definitely|undoubtedly|obviously|clearly|very|also|moreover"
    r"|furthermore|additionally|therefore|thus|hence|however|nevertheless|nonetheless|in fact|of"
    r" course|in addition"
    r"|without doubt|as well(?! as)|note that|it is (?:true|known|clear) that)(?!\S)"
)
_JOINED = re.compile(r"\A\s*(?:(?:and|but|so|yet)(?!\S)\s*)+")  # where a sentence begins
_SIGN = re.compile(rf"[{CJK}]")


@lru_cache(maxsize=1024)
def wording(text: str) -> tuple[str, ...]:
    """The words of a text in their order, as `normalise` writes them; without citations, tags,
    and what nobody sees.
    """
    if not text.isascii():
        text = _UNSEEN.sub("", "".join(sign for sign in text if unicodedata.category(sign) != "Cf"))
    return tuple(normalise(uncited(unmarked(text))).split())


@lru_cache(maxsize=1024)
def gist(text: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The words of a text, each once and in no order; then its Chinese, Japanese and Korean
    characters, and its numbers, each once, both in theirs. A few English words that say nothing
    ("indeed", "in fact") are left out.

    To pay neither for their order nor for how often they stand there is to teach nobody to turn
    sentences round. But "Bo is older than Ada" has the gist of "Ada is older than Bo": it is to
    be asked for only where both are known to be true.
    """
    said = wording(text)
    plain = _FILLERS.sub(" ", " ".join(said))
    words = _JOINED.sub("", plain).split() or said
    signs = [word for word in words if _SIGN.match(word)]
    numbers = dict.fromkeys(word for word in words if any(map(str.isdigit, word)))
    return frozenset(words).difference(signs, numbers), (*signs, *numbers)
