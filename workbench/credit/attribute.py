"""Align claims with a response, and assign reward events to tokens.

Source: RLFH, arXiv 2406.12221, section 3.2. The paper aligns a claim with its sentence by the
longest common subsequence of characters, and the sentence with the response by the longest common
substring. The claim's reward goes to the token with the last matched character.

The paper does not say which of several equally long alignments counts. Here it is the alignment
that ends first *(ours)*. To find it, we look for the shortest prefix of the sentence whose common
subsequence with the claim is as long as that of the whole sentence. The last matched character is
the last character of this prefix. Only lengths are computed, so memory is linear.

The quality of an alignment is its *coverage*: the share of the claim's words that the sentence has
in the same order *(ours)*. A share of characters would not measure quality: most letters of a
sentence also occur, in the same order, in a longer unrelated sentence.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum

from workbench.types import Claim, Event, Feedback, Response, Reward, Span

LARGEST = 1e100  # largest reward; the square of a larger one could overflow
THRESHOLD = 0.5  # (ours) a claim with less coverage is unplaced

# a run of letters and digits, or one character of a script without spaces
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)


def words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def match(claim: str, sentence: str) -> tuple[int, int, float] | None:
    """Return (start, end, coverage) of the part of `sentence` that matches `claim`, or None.

    Start and end are positions in `sentence`. The end is after the last matched character, as the
    module describes. The start is the latest one for which the match is still complete, moved back
    to the beginning of its word *(ours)*. Final punctuation of the claim is ignored; otherwise
    every claim would end at the full stop of the sentence.
    """
    from rapidfuzz.distance import LCSseq

    claim = strip_end(claim)
    length = LCSseq.similarity(claim, sentence)
    if not length:
        return None
    complete = lambda start, end: LCSseq.similarity(claim, sentence[start:end]) >= length  # noqa: E731
    # a longer part stays complete, so a binary search finds the first end and the last start
    end = bisect_left(range(length, len(sentence)), True, key=lambda end: complete(0, end)) + length
    start = bisect_left(range(end - length), True, key=lambda start: not complete(start + 1, end))
    return _word_start(sentence, start), end, coverage(claim, sentence)


def _word_start(text: str, position: int) -> int:
    """Return the start of the word at `position`; outside a word, return `position`."""
    spans = (word.span() for word in _WORD.finditer(text))
    return next((start for start, end in spans if start <= position < end), position)


def coverage(claim: str, sentence: str) -> float:
    """Return the share of the claim's words that the sentence has in the same order; 0 for a claim
    without words.
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

    An exact occurrence is preferred to the longest common substring. Start and end are positions in
    `text`. The share, from 0 to 1, is the matching part of the quote. Returns None if no character
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
    """Return the start and the length of the first longest substring of `quote` in `text[after:]`;
    the start is a position in `text`.

    Each start in the quote is tried with the best length so far plus one, so the number of searches
    is at most twice the quote's length.
    """
    best, best_start, start = 0, 0, 0
    while start + best < len(quote):
        at = text.find(quote[start : start + best + 1], after)
        if at < 0:
            start += 1
        else:
            best, best_start = best + 1, at
    return best_start, best


def locate(text: str, sentences: Sequence[Span], claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Place claims in a text: fill their `sentence`, `span`, `end` and `coverage`.

    A claim that has a span is unchanged. A claim without a sentence is placed in the sentence that
    covers most of its words. If a claim or its sentence occurs several times, the first claim is
    placed at the first occurrence, and so on. If a claim and its sentence have no character in
    common, `span` and `end` stay None.
    """
    used: dict[tuple[str, int], int] = {}  # (claim, sentence) -> end of the last such claim
    located: list[Claim] = []
    by_words = None
    for claim in claims:
        if claim.span is None and claim.sentence is None:
            by_words = by_words or [words(text[begin:end]) for begin, end in sentences]
            claim = replace(claim, sentence=_best_sentence(by_words, claim.text, used))
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
    if earlier > begin and alignment:  # prefer a second occurrence after the earlier claim
        second = match(claim.text, text[earlier:end])
        if second and second[2] >= alignment[2]:
            begin, alignment = earlier, second
    if alignment is None:
        return replace(claim, coverage=0.0)
    span = (begin + alignment[0], begin + alignment[1])
    used[claim.text, number] = span[1]
    return replace(claim, span=span, end=span[1], coverage=round(alignment[2], 4))


def _best_sentence(
    sentences: Sequence[list[str]], claim: str, used: Mapping[tuple[str, int], int]
) -> int | None:
    """Return the index of the sentence, a list of words, with the highest coverage.

    Of several such sentences, the sentence with most words of the claim's second half is returned
    *(ours)*: a claim names its subject first, and many sentences have the same subject. If several
    remain, the first in which the same claim has not been placed yet is returned.
    """
    from rapidfuzz.distance import LCSseq

    own = words(strip_end(claim))
    scores = [LCSseq.similarity(own, sentence) for sentence in sentences]
    highest = max(scores, default=0)
    if not highest:
        return None
    best = [number for number, score in enumerate(scores) if score == highest]
    half = own[len(own) // 2 :]
    halves = [LCSseq.similarity(half, sentences[number]) for number in best]
    best = [number for number, score in zip(best, halves, strict=True) if score == max(halves)]
    return next((number for number in best if (claim, number) not in used), best[-1])


def is_placed(claim: Claim) -> bool:
    """Return whether a claim was located in the response, so that it can be rewarded there.

    It was if it has an end position and either at least `THRESHOLD` of its words are in its
    sentence (`coverage`), or its span came with the claim (`coverage` is None).
    """
    return claim.end is not None and (claim.coverage is None or claim.coverage >= THRESHOLD)


def token_at(response: Response, end: int | None) -> int:
    """Return the index of the token that gets an event at character position `end`.

    This is the token with the character before `end`. If `end` is None, it is the last token, which
    is the end-of-sequence token unless the response was cut off.
    """
    return tokens_between(response.offsets, None, end)[0]


def place(response: Response, events: Sequence[Event]) -> tuple[float, ...]:
    """Return the reward of each of the T tokens, the sum of its events; () if T is 0."""
    if not response.offsets:
        return ()
    # `fsum` rounds once, so the order of the events on the same tokens does not change the sum
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
    """Return the indices of the tokens that share the value of an event equally."""
    return tokens_between(response.offsets, event.start, event.end)


def tokens_between(offsets: Sequence[Span], start: int | None, end: int | None) -> tuple[int, ...]:
    """Return the indices of the tokens in the span of characters from `start` to `end`, in order.

    Args:
        offsets: the span of each token's characters.
        start: None selects only the last token of the span.
        end: the last token is the token with the character before `end`; None: the last of all.
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
    """Return the reward with its field `tokens` filled: the events, distributed over the tokens.

    The value of a reward without events goes to the last token. A reward without a value is
    returned unchanged.
    """
    if reward.value is None:
        return reward
    events = reward.events or (Event("reward", reward.value),)
    return replace(reward, tokens=place(feedback.response, events))
