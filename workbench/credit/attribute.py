"""Claims to places in a response, and reward events to one number per token (RLFH, arXiv
2406.12221, section 3.2).

The paper goes from a claim to its sentence by the longest common subsequence of characters, from
the sentence to the response by the longest common substring, and pays the token that holds the
claim's last matched character. It leaves open which character that is where several alignments
are equally long; here it is unique: the end of the shortest prefix of the sentence whose common
subsequence with the claim is already as long as the whole sentence's *(ours)*. Only lengths are
computed, so memory stays linear.

How far a place is to be trusted is its *coverage*: the share of the claim's words that the
sentence has in the same order
*(ours)*. Characters would not tell: two unrelated English sentences share most letters of the
shorter one in order.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum

from workbench.types import Claim, Event, Feedback, Response, Reward

Span = tuple[int, int]
THRESHOLD = 0.5  # (ours) a claim with less coverage is unplaced

# A run of letters and digits is a word, and so is each character of a script that writes without
# spaces.
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)


def words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def match(claim: str, sentence: str) -> tuple[int, int, float] | None:
    """Where `claim` lies in `sentence`: start and end of the matched characters, and the
    coverage; None if nothing matches.

    Final punctuation of the claim is left out, or every claim would end on the full stop. The
    start is that of the word in which the latest complete match begins *(ours)*.
    """
    from rapidfuzz.distance import LCSseq

    wanted = strip_end(claim)
    # as most claims are; in time proportional to the sentence, which the search is not
    if span := _whole(wanted, sentence):
        return _word_start(sentence, span[0]), span[1], coverage(wanted, sentence)
    length = LCSseq.similarity(wanted, sentence)
    if not length:
        return None
    complete = lambda start, end: LCSseq.similarity(wanted, sentence[start:end]) >= length  # noqa: E731
    end = bisect_left(range(length, len(sentence)), True, key=lambda end: complete(0, end)) + length
    start = bisect_left(range(end - length), True, key=lambda start: not complete(start + 1, end))
    return _word_start(sentence, start), end, coverage(wanted, sentence)


def _whole(wanted: str, sentence: str) -> Span | None:
    """Where all characters of `wanted` stand in this order, if they do: the earliest end, and
    for that the latest start.
    """
    if not wanted:
        return None
    places = iter(range(len(sentence)))
    end = -1
    for character in wanted:
        end = next((place for place in places if sentence[place] == character), -1)
        if end < 0:
            return None
    before = iter(range(end, -1, -1))
    start = end
    for character in reversed(wanted):
        start = next(place for place in before if sentence[place] == character)
    return start, end + 1


def _word_start(text: str, position: int) -> int:
    """Where the word begins that holds the character at `position`; the position itself outside
    words.
    """
    start = position
    while (
        start
        and len(_WORD.findall(text[start - 1 : start + 1])) == 1
        and text[start - 1 : start + 1].isalnum()
    ):
        start -= 1
    return start


def coverage(claim: str, sentence: str) -> float:
    """The share of the claim's words that the sentence has in the same order; 0 for a claim
    without words.
    """
    from rapidfuzz.distance import LCSseq

    wanted, there = words(claim), words(sentence)
    remaining = iter(there)
    if wanted and all(word in remaining for word in wanted):
        return 1.0
    return LCSseq.similarity(wanted, there) / len(wanted) if wanted else 0.0


def strip_end(text: str) -> str:
    """`text` without final white space and punctuation, unless it is all punctuation."""
    end = len(text)
    while end and (text[end - 1].isspace() or unicodedata.category(text[end - 1]).startswith("P")):
        end -= 1
    return text[:end] or text


def find_sentence(text: str, quote: str, after: int = 0) -> tuple[int, int, float] | None:
    """A quoted sentence's place in `text` from `after` on: start, end, and the share of the
    quote that was found.

    An exact occurrence if there is one, else the longest common substring; None if they share no
    character.
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
    """Start in `text` and length of the first longest substring of `quote` that occurs in
    `text[after:]`.

    Every start of the quote is tried with a length one more than the best so far: no more
    searches than twice the quote's length.
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
    """Give every claim that has none its sentence, span, end and coverage.

    A claim without a sentence goes to the sentence that covers it best. Where the same claim is
    made, or the same sentence stands, several times, they are taken in order. A claim that
    shares nothing with its sentence keeps `span` and `end` None.
    """
    used: dict[tuple[str, int], int] = {}  # (claim, sentence) -> where the last such claim ended
    placed: list[Claim] = []
    coded = None
    for claim in claims:
        if claim.span is None and claim.sentence is None:
            coded = coded or _coded(text, sentences)
            claim = replace(claim, sentence=_best_sentence(*coded, claim.text, used))
        placed.append(_locate(text, sentences, claim, used) if claim.span is None else claim)
    return tuple(placed)


def _locate(
    text: str, sentences: Sequence[Span], claim: Claim, used: dict[tuple[str, int], int]
) -> Claim:
    number = claim.sentence
    if number is None:
        return replace(claim, coverage=0.0)
    begin, end = sentences[number]
    earlier = used.get((claim.text, number), begin)
    alignment = match(claim.text, text[begin:end])
    if earlier > begin and alignment:  # said before in this sentence: is it said again behind that?
        again = match(claim.text, text[earlier:end])
        if again and again[2] >= alignment[2]:
            begin, alignment = earlier, again
    if alignment is None:
        return replace(claim, coverage=0.0)
    span = (begin + alignment[0], begin + alignment[1])
    used[claim.text, number] = span[1]
    return replace(claim, span=span, end=span[1], coverage=round(alignment[2], 4))


def _coded(text: str, sentences: Sequence[Span]) -> tuple[dict[str, str], list[str]]:
    """A character for each word of the text, and the sentences in these: words are compared as
    fast as characters.
    """
    codes: dict[str, str] = {}
    split = (words(text[begin:end]) for begin, end in sentences)
    return codes, [
        "".join(codes.setdefault(word, chr(len(codes) + 1)) for word in sentence)
        for sentence in split
    ]


def _best_sentence(
    codes: Mapping[str, str],
    sentences: Sequence[str],
    claim: str,
    used: Mapping[tuple[str, int], int],
) -> int | None:
    """The sentence with the highest coverage; of equals, the first that this claim has not been
    placed in yet.
    """
    from rapidfuzz.distance import LCSseq

    wanted = "".join(codes.get(word, "\0") for word in words(strip_end(claim)))
    scores = [LCSseq.similarity(wanted, sentence) for sentence in sentences]
    highest = max(scores, default=0)
    if not highest:
        return None
    best = [number for number, score in enumerate(scores) if score == highest]
    return next((number for number in best if (claim, number) not in used), best[-1])


def is_placed(claim: Claim, threshold: float = THRESHOLD) -> bool:
    """Whether the claim was found well enough for its event to be paid where it stands."""
    return claim.end is not None and (claim.coverage is None or claim.coverage >= threshold)


def token_at(response: Response, end: int | None) -> int:
    """The token that an event ending at character `end` is paid to: it holds the character
    before `end`.

    None is the end of the response: its last token, which is the end-of-sequence token unless
    the response was cut off.
    """
    return _holding(response.offsets, end)


def _holding(offsets: Sequence[Span], end: int | None) -> int:
    last = len(offsets) - 1
    return (
        last if end is None else min(bisect_left(offsets, end, key=lambda offset: offset[1]), last)
    )


def place(response: Response, events: Sequence[Event]) -> tuple[float, ...]:
    """One number per token: the sum of the events paid to it. A response without tokens gives
    ().
    """
    if not response.offsets:
        return ()
    paid: dict[tuple[int, ...], list[float]] = {}
    for event in events:
        paid.setdefault(tokens_of(response, event), []).append(event.value)
    tokens = [0.0] * len(response.offsets)
    for share, values in paid.items():
        value = fsum(values) / len(share)
        for position in share:
            tokens[position] += value
    return tuple(tokens)


def tokens_of(response: Response, event: Event) -> tuple[int, ...]:
    """The tokens that share an event: the one at its end and, where it has a start, all before
    that hold a character of it.
    """
    return tokens_between(response.offsets, event.start, event.end)


def tokens_between(offsets: Sequence[Span], start: int | None, end: int | None) -> tuple[int, ...]:
    """The token at `end`, as `token_at` has it, and, where there is a start, all before that
    hold a character from there on.
    """
    last = _holding(offsets, end)
    if start is None:
        return (last,)
    first = bisect_right(offsets, start, key=lambda offset: offset[1])
    return (*(token for token in range(first, last) if offsets[token][0] < offsets[token][1]), last)


def assign_token_rewards(feedback: Feedback, reward: Reward) -> Reward:
    """The reward with its token rewards, where it was scored. One that has no events is paid at
    the end of the response.
    """
    if reward.value is None:
        return reward
    events = reward.events or (Event("reward", reward.value),)
    return replace(reward, tokens=place(feedback.response, events))
