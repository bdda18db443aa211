"""The world as a judge: exact verdicts on claims, in the same five labels that a model judge uses."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.types import CLAIM_LABELS, Failure, Verdict
from workbench.world.parser import Parsed, parser_of
from workbench.world.world import World

P_TRUE = {"correct": 1.0, "hedged_correct": 1.0, "vague": None, "hedged_wrong": 0.0, "wrong": 0.0}


class Oracle:
    """Decides claims about one world. A claim that cannot be read is a failure, never a label."""

    def __init__(self, world: World) -> None:
        self.world, self.parser = world, parser_of(world)

    def label(self, claim: Parsed) -> str:
        """The label of one parsed claim: closed world, so what is not a fact is wrong."""
        if claim.object is None:
            return "vague"
        true = self.world.by[claim.subject][claim.relation].object == claim.object
        if claim.stance == "hedged":
            return "hedged_correct" if true else "hedged_wrong"
        return "correct" if true else "wrong"

    def judge(self, claims: Sequence[str], topic: str | None = None) -> list[Verdict]:
        """One verdict per claim text, in order. A claim that states several facts is as bad as its worst."""
        return [self._judge(number, claim, topic) for number, claim in enumerate(claims)]

    def _judge(self, number: int, claim: str, topic: str | None) -> Verdict:
        target = f"claim:{number}"
        parse = self.parser.parse(claim, topic)
        if parse.unparsed or not parse.claims:
            reason = parse.unparsed[0].reason if parse.unparsed else "no statement"
            failure = Failure("verify", "unparsed", f"the claim is not a statement about this world ({reason})", claim)
            return Verdict(target, "fact", by="world", error=failure)
        labels = [self.label(parsed) for parsed in parse.claims]
        worst = max(labels, key=CLAIM_LABELS.index)
        facts = [self.world.by[parsed.subject][parsed.relation] for parsed in parse.claims]
        return Verdict(
            target, "fact", worst, p=P_TRUE[worst], informativeness=max(fact.importance for fact in facts),
            evidence=tuple({"fact": fact.id} for fact in facts), by="world",
        )  # fmt: skip
