"""The world as a judge: exact verdicts on claims, in the same five labels that a model judge
uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.types import CLAIM_LABELS, Failure, Passage, Verdict
from workbench.world.facts import Fact
from workbench.world.parser import Parsed, parser_of
from workbench.world.render import thought
from workbench.world.stated import Stated, newest, stated
from workbench.world.world import World

P_TRUE = {"correct": 1.0, "hedged_correct": 1.0, "vague": None, "hedged_wrong": 0.0, "wrong": 0.0}


class Oracle:
    """Decides claims about one world. A claim that cannot be read is a failure, never a label.

    With `told` it goes by what some passages state instead of by the facts: where editions
    differ, by the newest, and what they say nothing of is vague.
    """

    def __init__(self, world: World, told: Stated | None = None) -> None:
        self.world, self.parser, self.told = world, parser_of(world), told

    def by_passages(self, passages: Sequence[Passage]) -> Oracle:
        """The oracle that goes by these."""
        return Oracle(self.world, stated(self.parser, passages))

    def label(self, claim: Parsed) -> str:
        """The label of one parsed claim: closed world, so what is not a fact is wrong."""
        true = self._objects(claim)
        if claim.object is None or not true:
            return "vague"
        truth = "correct" if claim.object in true else "wrong"
        return f"hedged_{truth}" if claim.stance == "hedged" else truth

    def _objects(self, claim: Parsed) -> frozenset[str]:
        """What is true of the claim's subject; nothing where nobody says."""
        if self.told is None:
            return frozenset({self.world.by[claim.subject][claim.relation].object})
        return newest(self.told.get((claim.subject, claim.relation), ()))

    def judge(self, claims: Sequence[str], topic: str | None = None) -> list[Verdict]:
        """One verdict per claim text, in order. A claim that states several facts is as bad as
        its worst.
        """
        return [self._judge(number, claim, topic) for number, claim in enumerate(claims)]

    def _judge(self, number: int, claim: str, topic: str | None) -> Verdict:
        target = f"claim:{number}"
        parse = self.parser.parse(claim, topic)
        if parse.unparsed or not parse.claims:
            reason = parse.unparsed[0].reason if parse.unparsed else "no statement"
            failure = Failure(
                "verify",
                "unparsed",
                f"the claim is not a statement about this world ({reason})",
                claim,
            )
            return Verdict(target, "fact", by="world", error=failure)
        labels = [self.label(parsed) for parsed in parse.claims]
        worst = max(labels, key=CLAIM_LABELS.index)
        facts = [self.world.by[parsed.subject][parsed.relation] for parsed in parse.claims]
        return Verdict(
            target,
            "fact",
            worst,
            p=P_TRUE[worst],
            informativeness=max(fact.importance for fact in facts),
            evidence=self._evidence(parse.claims, facts),
            by="world",
        )

    def _evidence(
        self, claims: Sequence[Parsed], facts: Sequence[Fact]
    ) -> tuple[Mapping[str, Any], ...]:
        """The facts that are spoken of, as they are; of passages, the sentences that say the
        same or, where none does, speak of it."""
        if self.told is None:
            return tuple({"fact": fact.id, "text": thought(fact, "en")} for fact in facts)
        about = [
            (claim, source)
            for claim in claims
            for source in self.told.get((claim.subject, claim.relation), ())
        ]
        same = [source for claim, source in about if source.object == claim.object]
        return tuple(
            {"passage": one.passage, "span": one.span}
            for one in same or [source for _, source in about]
        )
