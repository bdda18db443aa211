"""Find the positions of claims in a response, and assign the parts of a reward to tokens.

An event is a part of a reward with a position in the response (`workbench.types.Event`). A claim's
events are at the claim's position if its words were found in the response (`is_placed`).

Source: RLFH, arXiv 2406.12221, section 3.2. The paper aligns a claim with its sentence by the
longest common subsequence of characters. It aligns the sentence with the response by the longest
common substring. The claim's reward goes to the token with the last matched character. Of several
equally long alignments, the one that ends first is used *(ours)*.

The quality of an alignment is its *coverage* *(ours)*: the share of the claim's words that occur in
the sentence in the same order.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import fsum

from workbench.types import Claim, Event, Feedback, Response, Reward, Span

LARGEST = 1e100  # largest absolute value of a reward; squares of larger ones could overflow
THRESHOLD = 0.5  # (ours) least coverage of a claim that counts as found in the response

# a run of letters and digits, or one character of a script without spaces
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)


def words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def match(claim: str, sentence: str) -> tuple[int, int, float] | None:
    """Return (start, end, coverage) of the part of `sentence` that matches `claim`.

    "born in Paris" and "She was born in 1900 in Paris." → (8, 29, 1.0)

    Start and end are positions in `sentence`. The part contains a longest common subsequence of
    characters of both texts. It is the part that ends first; of several, the shortest. It is then
    extended to the start of its first word *(ours)*. Final punctuation of the claim is ignored. The
    coverage is the share of the claim's words that occur in the sentence in the same order, from 0
    to 1. Returns None if no character matches. Case is ignored, unless the sentence quotes the
    claim exactly *(ours)*.
    """
    from rapidfuzz.distance import LCSseq

    claim = strip_end(claim)  # its full stop would match that of the sentence
    if claim not in sentence:
        claim, sentence = _folded(claim), _folded(sentence)
    length = LCSseq.similarity(claim, sentence)
    if not length:
        return None
    complete = lambda start, end: LCSseq.similarity(claim, sentence[start:end]) >= length  # noqa: E731
    # If a part of the sentence is complete, every longer part is. So binary search works, for the
    # first complete end and the last complete start.
    end = bisect_left(range(length, len(sentence)), True, key=lambda end: complete(0, end)) + length
    start = bisect_left(range(end - length), True, key=lambda start: not complete(start + 1, end))
    return _word_start(sentence, start), end, coverage(claim, sentence)


def _folded(text: str) -> str:
    """Return `text` without case. Its length is unchanged: "ß" is kept, not changed to "ss"."""
    folded = text.casefold()
    if len(folded) == len(text):
        return folded
    return "".join(new if len(new := letter.casefold()) == 1 else letter for letter in text)


def _word_start(text: str, position: int) -> int:
    """Return the start of the word at `position`, or `position` if it is outside a word."""
    spans = (word.span() for word in _WORD.finditer(text))
    return next((start for start, end in spans if start <= position < end), position)


def coverage(claim: str, sentence: str) -> float:
    """Return the share of the claim's words that occur in the sentence in the same order.

    The share is from 0 to 1. A claim without words has coverage 0.
    """
    from rapidfuzz.distance import LCSseq

    own = words(claim)
    return LCSseq.similarity(own, words(sentence)) / len(own) if own else 0.0


def strip_end(text: str) -> str:
    """Return `text` without final white space and punctuation, unless nothing would be left."""
    end = len(text)
    while end and (text[end - 1].isspace() or unicodedata.category(text[end - 1]).startswith("P")):
        end -= 1
    return text[:end] or text


def find_sentence(text: str, quote: str, after: int = 0) -> tuple[int, int, float] | None:
    """Find a quoted sentence in `text` from position `after` on; return (start, end, share).

    The result is the first exact occurrence of the quote or, without one, the longest common
    substring of the quote and the text. Start and end are positions in `text`. The share, from 0 to
    1, is the length of the match divided by the length of the quote. Returns None if no character
    matches.
    """
    quote = quote.strip()
    if not quote:
        return None
    start = text.find(quote, after)
    if start >= 0:
        return start, start + len(quote), 1.0
    start, length = _common_substring(quote, text, after)
    return (start, start + length, length / len(quote)) if length else None


def _common_substring(quote: str, text: str, after: int) -> tuple[int, int]:
    """Return the start and the length of the longest substring of `quote` in `text[after:]`.

    The start is a position in `text`. The length is 0 if no character matches.
    """
    best, best_start, start = 0, 0, 0
    while start + best < len(quote):
        at = text.find(quote[start : start + best + 1], after)
        if at < 0:
            start += 1
        else:
            best, best_start = best + 1, at
    return best_start, best


def locate(
    text: str, sentences: Sequence[Span], claims: Sequence[Claim], titles: Collection[str] = ()
) -> tuple[Claim, ...]:
    """Return the claims with their positions in a response `text`.

    These fields of each claim are set:

    * `sentence`: index of its sentence. A claim without one gets the sentence with most of its
      words. Words of `titles` count only between sentences with equally many other words *(ours)*.
    * `span`: (start, end) of the characters in `text` that match the claim.
    * `end`: the end of `span`.
    * `coverage`: share of the claim's words that occur in the sentence in the same order.

    A claim that already has a span is unchanged. If several claims have the same text, later claims
    get later occurrences where possible. A claim that matches no text gets no span, and coverage 0.

    Args:
        sentences: the span of each sentence in `text`.
        titles: the subjects of the question (`Question.titles`). Most claims name the subject, and
            most sentences refer to it by a pronoun.
    """
    names = {word for title in titles for word in words(title)}
    # (claim's text, index of its sentence) -> end of the last claim with this text located there
    used: dict[tuple[str, int], int] = {}
    located: list[Claim] = []
    by_words = None
    for claim in claims:
        if claim.span is None and claim.sentence is None:
            by_words = by_words or [words(text[begin:end]) for begin, end in sentences]
            claim = replace(claim, sentence=_best_sentence(by_words, claim.text, used, names))
        located.append(_locate(text, sentences, claim, used) if claim.span is None else claim)
    return tuple(located)


def _locate(
    text: str, sentences: Sequence[Span], claim: Claim, used: dict[tuple[str, int], int]
) -> Claim:
    number = claim.sentence
    if number is None:
        return replace(claim, coverage=0.0)
    begin, end = sentences[number]
    earlier = used.get((claim.text, number), begin)
    alignment = match(claim.text, text[begin:end])
    # prefer a match after the previous claim with the same text, if its coverage is not lower
    if earlier > begin and alignment:
        second = match(claim.text, text[earlier:end])
        if second and second[2] >= alignment[2]:
            begin, alignment = earlier, second
    if alignment is None:
        return replace(claim, coverage=0.0)
    span = (begin + alignment[0], begin + alignment[1])
    used[claim.text, number] = span[1]
    return replace(claim, span=span, end=span[1], coverage=round(alignment[2], 4))


def _best_sentence(
    sentences: Sequence[list[str]],
    claim: str,
    used: Mapping[tuple[str, int], int],
    names: Collection[str],
) -> int | None:
    """Return the index of the sentence that contains most of the claim's words in the same order.

    Words of the question's subject are left out at first. Returns None if no sentence shares a word
    with the claim. Of several sentences with equally many words, these are preferred, in this
    order:

    * those with most words of the claim, including the subject
    * those with most words of the claim's second half *(ours)*; the first half often has only the
      subject, which many sentences share
    * the first one without a located claim of the same text
    * the last one

    Args:
        sentences: the words of each sentence.
        used: its keys are (claim's text, index of the sentence) of the claims located so far.
        names: the words of the question's subject.
    """
    from rapidfuzz.distance import LCSseq

    own = words(strip_end(claim))
    parts = [word for word in own if word not in names], own, own[len(own) // 2 :]
    scores = [tuple(LCSseq.similarity(part, one) for part in parts) for one in sentences]
    highest = max(scores, default=(0, 0, 0))
    if not highest[1]:
        return None
    best = [number for number, score in enumerate(scores) if score == highest]
    return next((number for number in best if (claim, number) not in used), best[-1])


def is_placed(claim: Claim) -> bool:
    """Return whether a claim was found in the response, so that rewards can be assigned there.

    A claim was found if it has an end position and its coverage is at least `THRESHOLD` (0.5). A
    coverage of None (not computed) is accepted too.
    """
    return claim.end is not None and (claim.coverage is None or claim.coverage >= THRESHOLD)


def token_at(response: Response, end: int | None) -> int:
    """Return the index of the token that contains the character before position `end`.

    If `end` is None, this is the last token of the response: the end-of-sequence token, unless the
    response was cut off.
    """
    return tokens_between(response.offsets, None, end)[0]


def place(response: Response, events: Sequence[Event]) -> tuple[float, ...]:
    """Divide the parts of a reward among the tokens of a response; return one number per token.

    An event is a part of the reward with a position in the response. Its value is divided equally
    among the tokens at this position (`tokens_of`). If a token belongs to several events, its
    shares are added. Returns () if the response has no tokens.
    """
    if not response.offsets:
        return ()
    # events with the same tokens are added by `fsum`, whose result does not depend on their order
    by_tokens: dict[tuple[int, ...], list[float]] = {}
    for event in events:
        by_tokens.setdefault(tokens_of(response, event), []).append(event.value)
    rewards = [0.0] * len(response.offsets)
    for tokens, values in by_tokens.items():
        share = fsum(values) / len(tokens)
        for token in tokens:
            rewards[token] += share
    return tuple(rewards)


def tokens_of(response: Response, event: Event) -> tuple[int, ...]:
    """Return the indices of the tokens to which an event (a part of a reward) is assigned.

    * An event with `start` and `end` is assigned to all tokens between these positions.
    * An event with only an `end` is assigned to one token: the one with the character before it.
    * If `end` is None, the end of the response takes its place.
    """
    return tokens_between(response.offsets, event.start, event.end)


def tokens_between(offsets: Sequence[Span], start: int | None, end: int | None) -> tuple[int, ...]:
    """Return the indices of the tokens with characters between two positions, in ascending order.

    Args:
        offsets: the span of each token's characters.
        start: position of the first character. None returns a single token: the one with the last
            character before `end`.
        end: position after the last character; None for the end of the response. The last token is
            then returned too, even if it is a special token without characters.
    """
    last = len(offsets) - 1
    if end is not None:
        last = min(bisect_left(offsets, end, key=lambda offset: offset[1]), last)
    if start is None:
        return (last,)
    first = bisect_right(offsets, start, key=lambda offset: offset[1])
    # special tokens inside the span have no characters, so they get no share
    return (*(token for token in range(first, last) if offsets[token][0] < offsets[token][1]), last)


def assign_token_rewards(feedback: Feedback, reward: Reward) -> Reward:
    """Return `reward` with its field `tokens` set: the reward of each token of the response.

    The numbers are computed from `reward.events`, the parts of the reward with their positions. If
    there are no events, the last token gets the whole value. If `reward.value` is None, the reward
    is returned unchanged.
    """
    if reward.value is None:
        return reward
    events = reward.events or (Event("reward", reward.value),)
    return replace(reward, tokens=place(feedback.response, events))
