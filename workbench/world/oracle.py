"""The closed world as a judge: exact verdicts on claims, with the labels of a model judge.

The facts of the world decide. If a question has `meta["evidence"]` = "passages", the statements of
its passages decide instead.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from workbench.types import CLAIM_LABELS, Failure, JsonMapping, Passage, Verdict
from workbench.world.facts import Fact
from workbench.world.parser import EDITION, Parsed, Parser, parser_of
from workbench.world.render import thought
from workbench.world.world import World

# P(true) of each label; a vague claim is neither true nor false
P_TRUE = {"correct": 1.0, "hedged_correct": 1.0, "vague": None, "hedged_wrong": 0.0, "wrong": 0.0}


class Source(NamedTuple):
    """A sentence of a passage that states a fact, and the object of this fact.

    `passage` is the passage's id, `span` the characters of the sentence. `edition` is the year of
    the page's edition; 0 if the passage has none.
    """

    object: str
    passage: str
    span: tuple[int, int]
    edition: int


Statements = Mapping[tuple[str, str], Sequence[Source]]  # by subject and relation


def read_statements(parser: Parser, passages: Sequence[Passage]) -> Statements:
    """Return the facts that passages state: (subject, relation) -> objects with their sentences.

    Hedged and vague sentences are left out.
    """
    statements: dict[tuple[str, str], list[Source]] = {}
    for passage in passages:
        heading = EDITION.match(passage.text)
        for claim in parser.parse(passage.text).claims:
            if claim.object is not None and claim.stance == "asserted":
                source = Source(
                    claim.object, passage.id, claim.span, int(heading[1]) if heading else 0
                )
                statements.setdefault((claim.subject, claim.relation), []).append(source)
    return statements


def newest(sources: Sequence[Source]) -> frozenset[str]:
    """Return the objects that the newest edition among `sources` states.

    A newer edition of a page corrects the older edition.
    """
    edition = max((source.edition for source in sources), default=0)
    return frozenset(source.object for source in sources if source.edition == edition)


class Oracle:
    """Judge of claims that decides by the facts of a world, or by the statements of passages.

    A claim that cannot be parsed gets a verdict with an error and no label.

    Args:
        world: the world whose facts and names are used.
        statements: statements of passages, which decide instead of the facts; None to use the
            facts. If two editions of a page disagree, the newer one decides. A claim that no
            passage states or contradicts is vague.
    """

    def __init__(self, world: World, statements: Statements | None = None) -> None:
        self.world, self.parser, self.statements = world, parser_of(world), statements

    def by_passages(self, passages: Sequence[Passage]) -> "Oracle":
        """Return an oracle for the same world that decides by the statements of `passages`."""
        return Oracle(self.world, read_statements(self.parser, passages))

    def label(self, claim: Parsed) -> str:
        """Return the label of a parsed claim, one of `CLAIM_LABELS`.

        If the facts of the world decide, a claim that is not a fact is wrong. If passages decide, a
        claim is wrong if they state only other objects for its subject and relation. It is vague if
        they state no object. A claim without an object is always vague.
        """
        if self.statements is None:
            true = frozenset({self.world.by[claim.subject][claim.relation].object})
        else:
            true = newest(self.statements.get((claim.subject, claim.relation), ()))
        if claim.object is None or not true:
            return "vague"
        truth = "correct" if claim.object in true else "wrong"
        return f"hedged_{truth}" if claim.stance == "hedged" else truth

    def judge(self, claims: Sequence[str], topic: str | None = None) -> list[Verdict]:
        """Return a verdict on each claim, in order.

        A claim that states several facts gets the worst of their labels. The order from best to
        worst is "correct", "hedged_correct", "vague", "hedged_wrong", "wrong".

        Args:
            claims: the texts of the claims.
            topic: the entity to which a pronoun at the start of a claim refers.
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
        worst = max(labels, key=CLAIM_LABELS.index)  # the labels are ordered from true to false
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

    def _evidence(self, claims: Sequence[Parsed], facts: Sequence[Fact]) -> tuple[JsonMapping, ...]:
        """Return the evidence for a verdict: the true facts, or sentences of passages.

        With passages, these are the sentences that state the claims' objects. If there are none,
        they are the sentences that state other objects.
        """
        if self.statements is None:
            return tuple({"fact": fact.id, "text": thought(fact, "en")} for fact in facts)
        sources = [
            (source, source.object == claim.object)
            for claim in claims
            for source in self.statements.get((claim.subject, claim.relation), ())
        ]
        agreeing = [source for source, agrees in sources if agrees]
        return tuple(
            {"passage": source.passage, "span": source.span}
            for source in agreeing or [source for source, _ in sources]
        )
