"""Write drills: token sequences of random words whose targets can be predicted only by a mechanism
such as copying, or looking up the value that was stated for a name ("binding").
"""

import random
from collections.abc import Sequence
from typing import NamedTuple

Drill = tuple[list[int], list[bool]]  # token ids, and which of them have a loss

DRILLS = ("copying", "naming", "binding", "asking", "equality", "agreement", "order")
SIGNS = 0.4  # share of signs among the filler words


class Turns(NamedTuple):
    """Token ids of the marks of a conversation, of the full stop and of the question mark."""

    user: int
    assistant: int
    end: int
    stop: int
    asks: int


class DrillWriter:
    """Draws random drills from the words of a tokenizer.

    Args:
        fillers: ids of words that fill sentences.
        signs: ids of punctuation and section markers, which also occur as fillers. Without signs,
            drills do not transfer to text: accuracy in binding fell from .94 to .03 at the first
            full stop.
        names: ids of words that are used as names and values.
        years: ids of years, in ascending order.
        verdicts: ids of "equal" and "different".
        mark: id of the mark before an answer that other words separate from its question.
        turns: ids of the marks of a conversation.
        seed: seed of the random generator.
    """

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
        """Return a new drill of one of the kinds `DRILLS`."""
        return getattr(self, kind)()

    def copying(self) -> Drill:
        """Repeat a list of words three times."""
        ids = self.rng.choices(self.words, k=self.rng.randint(4, 20))
        # the first copy of the list cannot be predicted, and neither can the next word after it
        return ids * 3, [False] * (len(ids) + 1) + [True] * (2 * len(ids) - 1)

    def naming(self) -> Drill:
        """Repeat a name after some filler words and the mark."""
        drill: Drill = ([], [])
        for _ in range(self.rng.randint(8, 24)):
            name = self.rng.choice(self.names)
            _append(drill, [name, *self._filler(6), self.mark], name)
        return drill

    def binding(self) -> Drill:
        """State the values of names four times, each time in another order.

        Up to five filler words stand between a name and its value; the maximum varies by drill.
        """
        count = self.rng.randint(3, 8)
        words = self.rng.sample(self.names, 2 * count)
        names, values = words[:count], words[count:]
        most = self.rng.choice((0, 1, 2, 3, 5))
        drill: Drill = ([], [])
        for known in (False, True, True, True):
            for i in self.rng.sample(range(count), count):
                _append(drill, [names[i], *self._filler(most)], values[i], learnt=known)
        return drill

    def asking(self) -> Drill:
        """Bind values to names of one or two words, then ask for the values, turn after turn."""
        count, turns = self.rng.randint(2, 6), self.turns
        values = self.rng.sample(self.names, count)
        names = [self.rng.sample(self.names, size) for size in self.rng.choices((1, 2), k=count)]
        most = self.rng.choice((0, 1, 2, 3, 5))
        ids = [turns.user]
        for name, value in zip(names, values, strict=True):
            ids += [*name, *self._filler(most), value, turns.stop]
        drill: Drill = ([], [])
        for i in self.rng.sample(range(count), count):
            ids += [*self._filler(3), *names[i], *self._filler(3), turns.asks, turns.assistant]
            _append(drill, ids, values[i])
            ids = [turns.stop, turns.end, turns.user]
        return drill

    def equality(self) -> Drill:
        """State pairs of words, and whether the two words are equal."""
        return self._pairs((0,))

    def agreement(self) -> Drill:
        """State pairs of words, and whether the two words are equal.

        Up to three other words stand before the first word of a pair, and again before the second.
        """
        return self._pairs((0, 1, 2, 3))

    def _pairs(self, contexts: Sequence[int]) -> Drill:
        drill: Drill = ([], [])
        for _ in range(self.rng.randint(4, 11)):
            first, other, *context = self.rng.sample(self.names, 2 + self.rng.choice(contexts))
            equal = self.rng.random() < 0.5
            ids = [*context, *self._filler(3), first, *self._filler(4)]
            ids += [*context, *self._filler(3), first if equal else other]
            if self.rng.random() < 0.7:
                ids += [*self._filler(3), self.mark]
            _append(drill, ids, self.equal if equal else self.different)
        return drill

    def order(self) -> Drill:
        """State two years, or two words with years, and then the earlier year or its word."""
        drill: Drill = ([], [])
        for _ in range(self.rng.randint(4, 16)):
            first, second = self.rng.sample(range(len(self.years)), 2)
            if self.rng.random() < 0.3:
                pair = [self.years[first], self.years[second]]
                _append(drill, pair, self.years[min(first, second)])
            else:
                one, two = self.rng.sample(self.names, 2)
                ids = [one, *self._filler(4), self.years[first]]
                ids += [two, *self._filler(4), self.years[second], self.mark]
                _append(drill, ids, one if first < second else two)
        return drill

    def _filler(self, most: int) -> list[int]:
        """Return up to `most` filler words and signs."""
        return [
            self.rng.choice(self.signs if self.rng.random() < SIGNS else self.fillers)
            for _ in range(self.rng.randint(0, most))
        ]


def _append(drill: Drill, context: Sequence[int], target: int, learnt: bool = True) -> None:
    """Append context words and a target to a drill. The target counts in the loss if `learnt`."""
    ids, flags = drill
    ids += [*context, target]
    flags += [False] * len(context) + [learnt]
