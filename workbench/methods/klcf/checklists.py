"""Make training data from the base model's facts (KLCF, arXiv 2509.23765, section 2.2).

The data are a checklist for each question, and labelled claims for the truthfulness model.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from workbench.methods.klcf.facts import LABELS, Fact, QuestionFacts
from workbench.metrics.rows import share
from workbench.types import Claim, Claims, JsonObject, Question, Response, Verify

RATIO = 2  # supported claims for each refuted one (appendix B.1)
POOL = 5  # most candidate facts per checklist item, to limit the number of judge calls *(ours)*


class Labelled(NamedTuple):
    """A claim for the training of the truthfulness model, with the label "correct" or "wrong"."""

    question: Question
    claim: str
    label: str


@dataclass
class _Checklist:
    """A checklist under construction: its items, and a pool of facts that may still be added."""

    question: Question
    pool: list[Fact]
    items: list[Fact] = field(default_factory=list)

    def comparison_input(self) -> tuple[Response, Claims]:
        """Return input for the check "claim_checklist", which compares claims with a checklist.

        The claims are the facts in the pool. The checklist has one item: the item that was added
        last. The response is empty.
        """
        question = replace(self.question, checklist=(self.items[-1].text,), passages=())
        claims = tuple(Claim(number, fact.text) for number, fact in enumerate(self.pool))
        return Response("", question, ""), Claims(claims=claims)


def checklists(
    found: Sequence[QuestionFacts], same: Verify | None, most: int, important: int
) -> tuple[dict[str, list[Fact]], Counter[str]]:
    """Return a checklist of supported facts for each question, and counts of facts.

    The facts are sorted by informativeness, then by frequency. Facts that were stated only with a
    hedge ("perhaps") are left out. Facts that repeat or contradict an earlier item are left out
    too.

    Args:
        found: the facts of each question.
        same: the check "claim_checklist", which compares facts. None: facts are not compared.
        most: largest number of items on a checklist.
        important: lowest informativeness of an item, from 1 to 5. Facts whose informativeness is
            None are accepted.

    Returns:
        * question id -> checklist. Questions without a checklist are left out.
        * counts: "supported" is the number of supported facts, "items" is the number of facts on
          checklists. The other facts are counted by the reason for leaving them out: "hedged",
          "unimportant", "same_fact", "contradicting", "unjudged" (the comparison failed) or
          "beyond" (too many facts). "compared" is the number of comparisons that found different
          facts.
    """
    counts, lists = Counter[str](), list[_Checklist]()
    for question, facts in found:
        true = [fact for fact in facts if fact.label == LABELS[0]]
        plain = [fact for fact in true if fact.plain]
        fit = [f for f in plain if f.informativeness is None or f.informativeness >= important]
        # a fact without a rating is sorted as if rated `important`
        fit.sort(key=lambda fact: (-(fact.informativeness or important), -fact.said))
        lists.append(_Checklist(question, fit[: POOL * most]))
        counts.update(
            supported=len(true),
            hedged=len(true) - len(plain),
            unimportant=len(plain) - len(fit),
            beyond=len(fit[POOL * most :]),
        )
    for _ in range(most):
        for one in lists:
            one.items += [one.pool.pop(0)] if one.pool else []
        # each round adds one item to every checklist, so that the judge gets large batches
        if same is not None and (growing := [one for one in lists if one.pool]):
            counts += _drop_similar(growing, same)
    counts.update(beyond=sum(len(one.pool) for one in lists))
    counts.update(items=sum(len(one.items) for one in lists))
    return {one.question.id: one.items for one in lists if one.items}, counts


# label of the comparison of a fact with the newest item -> name of the count
OUTCOMES = {
    "consistent": "same_fact",
    "contradictory": "contradicting",
    "missing": "compared",
    None: "unjudged",
}


def _drop_similar(lists: Sequence[_Checklist], same: Verify) -> Counter[str]:
    """Remove from each pool the facts that repeat or contradict the checklist's newest item.

    Facts whose comparison failed are removed, too. Return outcome -> number of facts.
    """
    counts = Counter[str]()
    for one, checked in zip(lists, same([one.comparison_input() for one in lists]), strict=True):
        labels = {v.target: v.label for v in checked.verdicts if v.error is None}
        outcomes = [OUTCOMES[labels.get(f"claim:{number}")] for number in range(len(one.pool))]
        one.pool = [f for f, name in zip(one.pool, outcomes, strict=True) if name == "compared"]
        counts.update(outcomes)
    return counts


def truth_rows(
    found: Sequence[QuestionFacts], most_copies: int, seed: int
) -> tuple[list[Labelled], dict[str, int]]:
    """Return labelled claims to train the truthfulness model on, in random order, and counts.

    There are two supported claims for each refuted claim (appendix B.1). Surplus claims are left
    out at random. Refuted claims are usually rarer: each of them is repeated, as often as the
    number of supported claims allows.

    Args:
        found: the facts of each question.
        most_copies: largest number of copies of a refuted claim.

    Returns:
        The claims, and these counts:

        * "support", "refute": numbers of supported and refuted facts
        * "copies": number of copies of each refuted claim
        * "correct", "wrong": numbers of returned claims with this label
    """
    labelled = [Labelled(question, f.text, f.label) for question, facts in found for f in facts]
    true, false = ([row for row in labelled if row.label == label] for label in LABELS)
    copies = max(1, min(most_copies, len(true) // (RATIO * len(false)))) if false else 0
    rng = random.Random(f"truth-{seed}")
    refuted = rng.sample(false, min(len(false), len(true) // RATIO)) * copies
    rows = [*rng.sample(true, RATIO * len(refuted)), *refuted]
    counts = {"support": len(true), "refute": len(false), "copies": copies}
    chosen = {label: sum(row.label == label for row in rows) for label in LABELS}
    return rng.sample(rows, len(rows)), counts | chosen


def known(
    shown: Callable[[Question], int | None],
    questions: Sequence[Question],
    lists: Mapping[str, Sequence[Fact]],
) -> JsonObject | None:
    """Return the precision and recall of checklists, given the base model's training documents.

    Args:
        shown: question -> number of training documents that state the facts in the question's
            `meta["fact_ids"]`; None if unknown.
        lists: question id -> checklist.

    Returns:
        * `precision`: share of the facts on checklists that a training document states
        * `recall`: share of the required facts that are on the question's checklist. A fact is
          required if the question asks for it and a training document states it.
        * `items`, `shown`: the denominators of `precision` and `recall`

        None if the training documents are unknown, or if no fact on a checklist has an id
        (`Fact.ids`).
    """

    def states(fact: str) -> bool:
        return bool(shown(Question("", "", meta={"fact_ids": (fact,)})))

    listed = [(name, fact_id) for name, facts in lists.items() for f in facts for fact_id in f.ids]
    if all(shown(question) is None for question in questions) or (lists and not listed):
        return None
    needed = [(q.id, fact_id) for q in questions for fact_id in q.meta.get("fact_ids", ())]
    wanted = [pair for pair in needed if states(pair[1])]
    return {
        "precision": share(sum(states(fact_id) for _, fact_id in listed), len(listed)),
        "recall": share(len({*listed} & {*wanted}), len(wanted)),
        "items": len(listed),
        "shown": len(wanted),
    }
