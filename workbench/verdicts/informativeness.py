"""Rate the informativeness of claims from 1 to 5 by rules *(ours)*; RLFH uses a language model."""

import re
from collections.abc import Sequence
from functools import lru_cache

from workbench.text.markup import plain
from workbench.types import USELESS, Claim
from workbench.util.patterns import regex
from workbench.verifier.reading import read_denial

_WORD = regex(r"\w+")
_FUNCTION = frozenset(
    "a an the of in on at by for to from with and or but is was are were be been being it its he"
    " she they his her their this that these those as which who whom whose what when where why how"
    " did do does has have had not also one i you we very really truly indeed famous great notable"
    " renowned known well important".split()
)
# Words that say only that a subject exists, and words of a request for a text.
_KINDS = frozenset(
    "person people human being man woman someone individual figure thing things object something"
    " place country countries nation state city town village region area world name names named"
    " called life kind type exist exists existed live lives lived alive born die died dead did done"
    " make made take took give gave become became won year years date time tell write describe"
    " biography about information facts summary short explain me".split()
)
_VALUE = regex(r"\d+|(?<=\s)[A-Z]\w*")
_YES_NO = regex(r"(?i)\s*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would)\b")


def informativeness(claims: Sequence[Claim], question: str, title: str = "") -> dict[int, int]:
    """Rate the informativeness of each claim from 1 to 5; return a dict from claim id to rating.

    Content words are all words except words such as "the", "was" and "place". The subject of the
    question is `title`, if the question contains the title. Otherwise, it is the name in the
    question. The rating does not depend on the truth of a claim. The first rule that fits decides:

    * 1: the claim has no new content word. It only repeats words of the question ("X is a
      country."), of an earlier claim, or of a longer claim in the same sentence. A denial also gets
      1. If the question is a yes/no question, a claim may repeat its words or deny it.
    * 5: the claim has at least half of the question's content words, not counting the subject. If
      the question has no other content words, the claim must name the subject and a new number or
      name.
    * 4: the claim names the subject, or has another content word of the question.
    * 3: the claim is in the same sentence as a claim rated 4 or 5, or in the next sentence.
    * 2: all other claims.
    """
    # the title may be the answer: "Canberra" for the capital of Australia
    words_asked = _content(question)
    names = _content(" ".join(re.findall(r"(?<=\s)[A-Z]\S*", question)))
    titled = _content(title) & words_asked
    subject = titled or names
    if not (subject or words_asked - _KINDS):
        subject = _content(title)
    yes_no = bool(_YES_NO.match(question))
    asked = words_asked - subject - _KINDS
    # an answer to a yes/no question repeats the question's words, so only the title is known
    known = titled if yes_no else subject | asked
    texts = [plain(claim.text) for claim in claims]
    words = list(map(_content, texts))
    ratings: dict[int, int] = {}
    near: int | None = None  # the last sentence with a claim rated 4 or 5
    for i, claim in enumerate(claims):
        added = frozenset(word for word in words[i] - _KINDS if not _is_in(word, known))
        follows = near is not None and claim.sentence is not None and claim.sentence - near <= 1
        if (
            not added
            or _is_repeated(i, claims, words)
            or (not yes_no and read_denial(texts[i]).denied)
        ):
            rating = USELESS
        elif sum(_is_in(word, words[i]) for word in asked) >= max(1, len(asked) / 2) or (
            # a number or a name that is not the first word
            not asked
            and subject & words[i]
            and any(value.lower() in added for value in _VALUE.findall(texts[i]))
        ):
            rating = 5
        elif words[i] & (subject | asked):
            rating = 4
        else:
            rating = 3 if follows else 2
        if rating >= 4:
            near = claim.sentence
        ratings[claim.id] = rating
    return ratings


def _is_repeated(i: int, claims: Sequence[Claim], words: Sequence[frozenset[str]]) -> bool:
    return any(words[i] <= earlier for earlier in words[:i]) or any(
        words[i] < later
        for claim, later in zip(claims[i + 1 :], words[i + 1 :], strict=True)
        if claim.sentence is not None and claim.sentence == claims[i].sentence
    )


def is_part(part: str, whole: str) -> bool:
    """Return whether `whole` has all content words of the claim `part`, and at least one more."""
    return _content(part) < _content(whole)


def _is_in(word: str, others: frozenset[str]) -> bool:
    """Return whether `others` has `word` or another form of it, such as "opened" for "open"."""
    return word in others or any(
        word.startswith(other) or other.startswith(word)
        for other in others
        if min(len(word), len(other)) >= 4  # shorter prefixes match by chance ("car", "carpet")
    )


@lru_cache(maxsize=4096)
def _content(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(plain(text).lower()) if word not in _FUNCTION)
