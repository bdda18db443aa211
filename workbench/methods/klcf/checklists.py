"""What a model's own verified claims become (KLCF, arXiv 2509.23765, section 2.2): a checklist
for each question, and claims to learn truth from. A claim is supported (correct), refuted
(wrong), or the evidence says too little of it (vague).

Everything that is left out is counted. A claim about somebody else than the question is left out
too *(ours)*: it is no part of the answer, and what is true of people who are kept for measuring
must not be learnt.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from workbench.types import (
    REFUTED,
    SUPPORTED,
    UNPARSED,
    USELESS,
    Claim,
    Claims,
    Feedback,
    Question,
    Response,
    Verdict,
    Verify,
)
from workbench.util.failures import unjudged

LABELS = ("correct", "wrong")  # SUPPORT and REFUTE
RATIO = 2  # supported claims to one refuted (appendix B.1)
# facts that are looked at for each item that a checklist may have: a judge reads no list of
# thousands *(ours)*
POOL = 5


@dataclass(frozen=True)
class Fact:
    """What samples claim of a question, once: its label, how often it was said, and how
    informative it was rated at best.

    `plain` is whether somebody said it without a hedge; `ids` are the closed world's facts that
    it states.
    """

    text: str
    label: str
    said: int = 1
    informativeness: int | None = None
    plain: bool = True
    ids: tuple[str, ...] = ()


class Labelled(NamedTuple):
    """A claim to learn truth from."""

    question: Question
    claim: str
    label: str


Found = Sequence[tuple[Question, Sequence[Fact]]]  # questions, and what their samples claim


def key(text: str) -> str:
    """Normalise a claim, so that claims in the same words compare equal."""
    return " ".join(text.split()).casefold().rstrip(".! ")


def facts_of(feedbacks: Iterable[Feedback]) -> tuple[list[Fact], Counter[str]]:
    """The facts that a question's samples claim, those that most of them say first, and what all
    claims came to: mentions of each kind, and of facts how many are supported, refuted or, said
    to be both as often, `conflicting`."""
    counts, said = Counter[str](), dict[str, list[tuple[Claim, Verdict]]]()
    for feedback in feedbacks:
        verdicts = {
            (verdict.target, verdict.aspect): verdict for verdict in reversed(feedback.verdicts)
        }
        for claim in feedback.claims:
            target = f"claim:{claim.id}"
            verdict = verdicts.get((target, "fact"))
            subject = verdicts.get((target, "subject"))
            kind = _kind(claim, verdict, subject)
            counts[kind] += 1
            if verdict is not None and kind in ("support", "refute"):
                said.setdefault(key(claim.text), []).append((claim, verdict))
    facts = [fact for mentions in said.values() if (fact := _agreed(mentions))]
    counts["conflicting"] = len(said) - len(facts)
    return sorted(facts, key=lambda fact: -fact.said), counts


def _kind(claim: Claim, verdict: Verdict | None, subject: Verdict | None) -> str:
    if verdict is None or verdict.error is not None or verdict.label is None:
        return "unverified"
    if not key(claim.text):
        return "empty"
    if _is_off_subject(verdict, subject):
        return "other_subject"
    if verdict.label in SUPPORTED:
        return "support"
    return "refute" if verdict.label in REFUTED else "not_enough_info"


def _is_off_subject(verdict: Verdict, subject: Verdict | None) -> bool:
    """Whether a claim is about somebody else. As in `workbench.metrics.rows`: where no check
    tells, one of the lowest informativeness counts as such, unless its judge could not read it."""
    if subject is not None and subject.label is not None:
        return subject.label == "other"
    return verdict.informativeness == USELESS and UNPARSED not in unjudged(
        {"evidence": verdict.evidence}
    )


def _agreed(mentions: Sequence[tuple[Claim, Verdict]]) -> Fact | None:
    """The fact that mentions in the same words make; None where as many are supported as
    refuted.
    """
    true = [verdict.label in SUPPORTED for _, verdict in mentions]
    if 2 * sum(true) == len(true):
        return None
    label = LABELS[0] if 2 * sum(true) > len(true) else LABELS[1]
    ratings = [
        verdict.informativeness for _, verdict in mentions if verdict.informativeness is not None
    ]
    ids = dict.fromkeys(
        str(item["fact"]) for _, verdict in mentions for item in verdict.evidence if "fact" in item
    )
    return Fact(
        " ".join(mentions[0][0].text.split()),
        label,
        len(mentions),
        max(ratings, default=None),
        any(verdict.label in LABELS for _, verdict in mentions),
        tuple(ids),
    )


def checklists(
    found: Found, same: Verify | None, most: int, important: int
) -> tuple[dict[str, list[Fact]], Counter[str]]:
    """By the question's id the supported facts of a good answer: rated `important` at least, or
    not rated, the most informative first, then what was said most often; each once, in whatever
    words, as `same` (a "claim_checklist" check) tells, and none that contradicts one before.
    Without `same` only equal words are the same.

    What follows from an item of a list is the same fact. A fact that could not be compared is
    left out.
    """
    counts, lists = Counter[str](), list[_List]()
    for question, facts in found:
        true = [fact for fact in facts if fact.label == LABELS[0]]
        fit = [
            fact
            for fact in true
            if fact.plain and (fact.informativeness is None or fact.informativeness >= important)
        ]
        ranked = sorted(fit, key=lambda fact: (-(fact.informativeness or important), -fact.said))
        lists.append(_List(question, ranked[: POOL * most]))
        hedged = sum(not fact.plain for fact in true)
        counts.update(supported=len(true), hedged=hedged, unimportant=len(true) - hedged - len(fit))
        counts.update(beyond=len(ranked[POOL * most :]))
    for _ in range(most):
        for one in lists:
            one.items += [one.pool.pop(0)] if one.pool else []
        if same is not None and (open_lists := [one for one in lists if one.pool]):
            counts += _drop_told(open_lists, same)
    counts.update(
        beyond=sum(len(one.pool) for one in lists), items=sum(len(one.items) for one in lists)
    )
    return {one.question.id: one.items for one in lists if one.items}, counts


@dataclass
class _List:
    """A partial checklist and the pool of facts that may still be added."""

    question: Question
    pool: list[Fact]
    items: list[Fact] = field(default_factory=list)

    def compared(self) -> tuple[Response, Claims]:
        """The facts of the pool as the claims of a response that is held against the last item
        alone.
        """
        asked = replace(self.question, checklist=(self.items[-1].text,), passages=())
        return Response("", asked, ""), Claims(
            claims=tuple(Claim(number, fact.text) for number, fact in enumerate(self.pool))
        )


TOLD = {
    "consistent": "same_fact",
    "contradictory": "contradicting",
    "missing": "compared",
    None: "unjudged",
}


def _drop_told(lists: Sequence[_List], same: Verify) -> Counter[str]:
    """Take out of the pools what the item that was last put on each list says already, or says
    otherwise: all lists at once.
    """
    counts = Counter[str]()
    for one, checked in zip(lists, same([one.compared() for one in lists]), strict=True):
        labels = {
            verdict.target: verdict.label for verdict in checked.verdicts if verdict.error is None
        }
        told = [TOLD[labels.get(f"claim:{number}")] for number in range(len(one.pool))]
        one.pool = [fact for fact, word in zip(one.pool, told, strict=True) if word == "compared"]
        counts.update(told)
    return counts


def truth_rows(found: Found, most_copies: int, seed: int) -> tuple[list[Labelled], dict[str, int]]:
    """Supported and refuted facts, 2 : 1 (appendix B.1): each refuted one as often as there are
    supported ones for, at most `most_copies` times, and as many supported ones drawn as that
    takes; where refuted ones are too many, they are drawn."""
    labelled = [
        Labelled(question, fact.text, fact.label) for question, facts in found for fact in facts
    ]
    true, false = ([row for row in labelled if row.label == label] for label in LABELS)
    copies = max(1, min(most_copies, len(true) // (RATIO * len(false)))) if false else 0
    rng = random.Random(f"truth-{seed}")
    refuted = rng.sample(false, min(len(false), len(true) // RATIO)) * copies
    rows = [*rng.sample(true, RATIO * len(refuted)), *refuted]
    counts = {"support": len(true), "refute": len(false), "copies": copies}
    return rng.sample(rows, len(rows)), counts | {
        label: sum(row.label == label for row in rows) for label in LABELS
    }
