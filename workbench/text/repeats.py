"""Compare texts to find repetitions.

Two texts that differ only in spelling or citations have the same `wording`. Two true statements
that also differ only in word order or in filler words have the same `gist`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from workbench.text.normal_form import CJK, normalise
from workbench.text.outline import uncited
from workbench.text.sections import unmarked

# Invisible characters outside the Unicode category Cf.
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0]")
# Words and phrases that do not change whether a sentence is true, as `normalise` writes them.
_FILLERS = re.compile(
    r"(?<!\S)(?:indeed|really|truly|actually|certainly|surely|definitely|undoubtedly|obviously|clearly|very|also|moreover"
    r"|furthermore|additionally|therefore|thus|hence|however|nevertheless|nonetheless|in fact|of"
    r" course|in addition"
    r"|without doubt|as well(?! as)|note that|it is (?:true|known|clear) that)(?!\S)"
)
_CONJUNCTIONS = re.compile(r"\A\s*(?:(?:and|but|so|yet)(?!\S)\s*)+")  # at the start of a sentence
_SIGN = re.compile(rf"[{CJK}]")


@lru_cache(maxsize=1024)
def wording(text: str) -> tuple[str, ...]:
    """The normalised words of a text in order, without citations, tags and invisible characters."""
    if not text.isascii():
        text = _INVISIBLE.sub(
            "", "".join(sign for sign in text if unicodedata.category(sign) != "Cf")
        )
    return tuple(normalise(uncited(unmarked(text))).split())


@lru_cache(maxsize=1024)
def gist(text: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the set of words, and the CJK characters and the distinct numbers in order.

    A few English filler words ("indeed", "in fact") are left out. The order and the count of words
    are ignored, so a reordered sentence counts as a repetition. Compare gists only of statements
    that are known to be true: "Bo is older than Ada" has the gist of "Ada is older than Bo".
    """
    normalised = wording(text)
    plain = _FILLERS.sub(" ", " ".join(normalised))
    words = _CONJUNCTIONS.sub("", plain).split() or normalised
    signs = [word for word in words if _SIGN.match(word)]
    numbers = dict.fromkeys(word for word in words if any(map(str.isdigit, word)))
    return frozenset(words).difference(signs, numbers), (*signs, *numbers)
