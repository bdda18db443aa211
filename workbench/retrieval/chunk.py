"""Split pages into passages of whole sentences."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from workbench.retrieval.words import word_starts
from workbench.text import sentences


def split_page(text: str, words: int) -> list[str]:
    """Split a page into passages of at most `words` words (see `word_starts`) at sentence ends.

    A sentence over the budget is cut between words. The passages keep all text except white
    space, in order. With `words=0` the page stays whole.
    """
    if not text.strip():
        return []
    if not words:
        return [text.strip()]
    starts = word_starts(text)
    cuts = _cuts(starts, [start for start, _ in sentences(text)], words)
    return [
        piece
        for begin, end in zip(cuts, [*cuts[1:], len(text)], strict=True)
        if (piece := text[begin:end].strip())
    ]


def _cuts(word_at: Sequence[int], sentence_at: Sequence[int], words: int) -> list[int]:
    """Return the character positions where passages begin."""
    cuts, first = [0], 0  # `first`: the number of the word with which the current passage begins
    bounds = [bisect_left(word_at, position) for position in sentence_at if position > 0]
    # words start:end are one sentence
    for start, end in zip([0, *bounds], [*bounds, len(word_at)], strict=True):
        if end - first <= words:
            continue
        if start > first:  # the sentence does not fit: it begins a new passage
            cuts.append(word_at[start])
            first = start
        while end - first > words:  # a sentence over the budget
            first += words
            cuts.append(word_at[first])
    return cuts
