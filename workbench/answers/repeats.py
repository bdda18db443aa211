"""What a text says again: two that differ in writing, in the order of their words or in what they cite alone are the same."""

from __future__ import annotations

import re
import unicodedata

from workbench.answers.kept import kept
from workbench.answers.outline import uncited
from workbench.answers.sections import unmarked
from workbench.answers.text import normalise

_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0]")  # and those of category Cf


@kept
def gist(text: str) -> frozenset[str]:
    """The words of a text, each once, as `normalise` writes them; without citations, tags, and what nobody sees.

    The order does not count, nor how often a word stands there: to pay for neither is to teach nobody to turn sentences round.
    """
    if not text.isascii():
        text = _UNSEEN.sub("", "".join(sign for sign in text if unicodedata.category(sign) != "Cf"))
    return frozenset(normalise(uncited(unmarked(text))).split())
