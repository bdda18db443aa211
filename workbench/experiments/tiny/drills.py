"""Write drills, sequences of random words that train one mechanism each.

A mechanism is, for example, copying, or looking up the value that was stated for a name
("binding"). Only the mechanism can predict the target tokens of its drill.
"""

import random
from collections.abc import Sequence
from typing import NamedTuple

Drill = tuple[list[int], list[bool]]  # token ids, and which of them have a loss

DRILLS = ("copying", "naming", "binding", "asking", "equality", "agreement", "order")
SIGNS = 0.4  # share of signs among the filler words


class Turns(NamedTuple):
    """Token ids that structure a conversation.

    They are the role tokens of `user` and `assistant`, the `end` of a turn, the full stop (`stop`)
    and the question mark (`asks`).
    """

    user: int
    assistant: int
    end: int
    stop: int
    asks: int


class DrillWriter:
    """A random generator of drills: sequences of random words that train one ability each.

    A drill is a list of token ids, and a flag for each token: True if it is a target, with a loss.

    Args:
        fillers: ids of words that stand between the important words.
        signs: ids of punctuation and of tags such as "<think>", which are mixed with the fillers.
            Without signs, the abilities do not transfer to text: the first full stop lowered the
            accuracy on `binding` drills from .94 to .03.
        names: ids of words that are used as names and values.
        years: ids of years, in ascending order.
        verdicts: (id for "equal", id for "different"), such as the ids of "Yes" and "No".
        mark: id of the token that announces an answer, such as "<answer>".
        turns: ids of role tokens and punctuation of a conversation.
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
        """Return a random drill; `kind` is one of `DRILLS`, such as "copying"."""
        return getattr(self, kind)()

    def copying(self) -> Drill:
        """Return a drill that consists of three copies of a random list of words."""
        ids = self.rng.choices(self.words, k=self.rng.randint(4, 20))
        # the first copy of the list cannot be predicted, and neither can the next word after it
        return ids * 3, [False] * (len(ids) + 1) + [True] * (2 * len(ids) - 1)

    def naming(self) -> Drill:
        """Return a drill that repeats each name after up to six filler words and the token `mark`.

        The repeated name is the target: "Ada of the <answer> Ada Bo in <answer> Bo".
        """
        drill: Drill = ([], [])
        for _ in range(self.rng.randint(8, 24)):
            name = self.rng.choice(self.names)
            _append(drill, [name, *self._filler(6), self.mark], name)
        return drill

    def binding(self) -> Drill:
        """Return a drill that states the values of some names in four rounds.

        Each round has a new order of the names: "Ada Fel Bo Kim" (Fel is the value of Ada), then
        "Bo Kim Ada Fel". From the second round on, the values are targets. Filler words may stand
        between a name and its value: none in some drills, up to five in others.
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
        """Return a drill in the form of a conversation about names and values.

        The first turn states a value for each name and asks for one of the values. Each later turn
        asks for another value. The values in the replies are targets: "<user> Ada Fel. Bo Kim. Bo?
        <assistant> Kim. <user> Ada? <assistant> Fel". A name has one or two words.
        """
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
        """Return a drill of word pairs, each followed by the word for "equal" or "different"."""
        return self._pairs((0,))

    def agreement(self) -> Drill:
        """Return a drill like `equality`, with a context before each word of a pair.

        The context is zero to three words, and the same for both words of a pair. The pair "Fel
        Kim Ada Fel Kim Bo" has the context "Fel Kim", and the words Ada and Bo are different.
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
        """Return a drill about the earlier of two years.

        The drill is a list of 4 to 16 examples. The last token of each example is the target:

        * two years and the earlier year: "1950 1923 1923"
        * two words with a year each, the mark, and the word with the earlier year: "Ada 1950 Bo
          1923 <answer> Bo". Up to four filler words stand between a word and its year.
        """
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
