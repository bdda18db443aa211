"""Lists of random words that nothing but a mechanism predicts: copying, naming, binding, asking,
equality, agreement, order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

Drill = tuple[list[int], list[bool]]  # token ids, and which of them are to be learnt

DRILLS = ("copying", "naming", "binding", "asking", "equality", "agreement", "order")
SIGNS = 0.4  # share of what stands between names


class Turns(NamedTuple):
    """Ids of what stands around questions and replies, of the full stop, and of the question
    mark.
    """

    user: int
    assistant: int
    end: int
    stop: int
    asks: int


class DrillWriter:
    """Draws lists of ids of words: `names` stand for what sentences are about and what they say,
    `fillers`, and `signs`, few and frequent, for the rest of a sentence and of a conversation.
    What was learnt between words alone breaks at the first full stop: .94 of bindings were right
    without one, .03 with. `years` are in order, `verdicts` say that two words are equal or not,
    `mark` stands before what does not follow at once, and `turns` are what a conversation is
    made of."""

    def __init__(
        self,
        fillers: Sequence[int],
        signs: Sequence[int],
        names: Sequence[int],
        years: Sequence[int],
        verdicts: tuple[int, int],
        mark: int,
        turns: Turns,
        seed: int | str,
    ) -> None:
        self.fillers, self.signs, self.names, self.years = fillers, signs, names, years
        self.mark, self.turns = mark, turns
        self.words = [*fillers, *names]
        self.equal, self.different = verdicts
        self.rng = random.Random(f"drills-{seed}")

    def draw(self, kind: str) -> Drill:
        return getattr(self, kind)()

    def copying(self) -> Drill:
        """A list told three times."""
        told = self.rng.choices(self.words, k=self.rng.randint(4, 20))
        return told * 3, [False] * (len(told) + 1) + [True] * (2 * len(told) - 1)

    def naming(self) -> Drill:
        """Names with other words after them, and each again after a mark."""
        drill: Drill = ([], [])
        for _ in range(self.rng.randint(8, 24)):
            name = self.rng.choice(self.names)
            _tell(drill, [name, *self._filler(6), self.mark], name)
        return drill

    def binding(self) -> Drill:
        """Values of names, told four times in another order, with other words between name and
        value each time: none in some lists, up to five in others."""
        count = self.rng.randint(3, 8)
        chosen = self.rng.sample(self.names, 2 * count)
        names, values = chosen[:count], chosen[count:]
        most = self.rng.choice((0, 1, 2, 3, 5))
        drill: Drill = ([], [])
        for again in (False, True, True, True):
            for place in self.rng.sample(range(count), count):
                _tell(drill, [names[place], *self._filler(most)], values[place], learnt=again)
        return drill

    def asking(self) -> Drill:
        """Sentences that bind values to names of one or two words, and questions that mention a
        name, turn after turn.
        """
        count, turns = self.rng.randint(2, 6), self.turns
        values = self.rng.sample(self.names, count)
        names = [self.rng.sample(self.names, size) for size in self.rng.choices((1, 2), k=count)]
        most = self.rng.choice((0, 1, 2, 3, 5))
        told = [turns.user]
        for name, value in zip(names, values, strict=True):
            told += [*name, *self._filler(most), value, turns.stop]
        drill: Drill = ([], [])
        for place in self.rng.sample(range(count), count):
            told += [*self._filler(3), *names[place], *self._filler(3), turns.asks, turns.assistant]
            _tell(drill, told, values[place])
            told = [turns.stop, turns.end, turns.user]
        return drill

    def equality(self) -> Drill:
        """Pairs of words, and whether the two are equal."""
        return self._pairs((0,))

    def agreement(self) -> Drill:
        """Pairs of words, each after the same few others, and whether the two are equal."""
        return self._pairs((0, 1, 2, 3))

    def _pairs(self, contexts: Sequence[int]) -> Drill:
        drill: Drill = ([], [])
        for _ in range(self.rng.randint(4, 11)):
            first, other, *context = self.rng.sample(self.names, 2 + self.rng.choice(contexts))
            equal = self.rng.random() < 0.5
            told = [
                *context,
                *self._filler(3),
                first,
                *self._filler(4),
                *context,
                *self._filler(3),
                first if equal else other,
            ]
            if self.rng.random() < 0.7:
                told += [*self._filler(3), self.mark]
            _tell(drill, told, self.equal if equal else self.different)
        return drill

    def order(self) -> Drill:
        """Pairs of years and the earlier of the two, or pairs of words with years and the word
        whose year is the earlier.
        """
        drill: Drill = ([], [])
        for _ in range(self.rng.randint(4, 16)):
            first, second = self.rng.sample(range(len(self.years)), 2)
            if self.rng.random() < 0.3:
                _tell(
                    drill, [self.years[first], self.years[second]], self.years[min(first, second)]
                )
            else:
                one, two = self.rng.sample(self.names, 2)
                told = [
                    one,
                    *self._filler(4),
                    self.years[first],
                    two,
                    *self._filler(4),
                    self.years[second],
                    self.mark,
                ]
                _tell(drill, told, one if first < second else two)
        return drill

    def _filler(self, most: int) -> list[int]:
        """Up to so many words that are no names, signs among them."""
        return [
            self.rng.choice(self.signs if self.rng.random() < SIGNS else self.fillers)
            for _ in range(self.rng.randint(0, most))
        ]


def _tell(drill: Drill, told: Sequence[int], last: int, learnt: bool = True) -> None:
    """Lengthen a drill by some words and one more, which is to be learnt."""
    ids, flags = drill
    ids += [*told, last]
    flags += [False] * len(told) + [learnt]
