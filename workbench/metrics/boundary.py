"""What k samples of each question tell about the boundary of a policy's knowledge: arithmetic on
their answers and outcomes.

A question is *out of knowledge* (OOK) if none of its k samples is correct (TruthRL, arXiv
2509.25760, section 3.2; 256 samples in the appendix). Of the closed world the truth is known as
well: a question is out of knowledge if a fact that it needs is in none of the documents, which
no sampling is needed for; `agreement` holds the label against that.

The majority is the answer that most samples give, in the normal form of `workbench.text`; an
abstention is an answer of its own, however it is worded, and of several answers with as many
votes the one that was drawn first is taken *(ours)*. Confidence is the share of the samples that
give the majority's answer *(ours: the paper's figure does not define it)*; no log-probability is
looked at. A sample that could not be graded has no vote and counts nowhere but in `failed`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from workbench.metrics.confidence import areas, ranked, risk_coverage
from workbench.metrics.distributions import binned
from workbench.metrics.outcomes import RATES
from workbench.metrics.rows import Row, share
from workbench.types import OUTCOMES

CORRECT, UNCERTAIN, INCORRECT = OUTCOMES
# what shares of samples are called, as outcomes and rates are in order
SHARES = ("correct", "abstain", "wrong")
BINS = 10
# characters of a normalised answer that are kept: two that agree so far count as the same
LONGEST = 200


class Sample(NamedTuple):
    """One sample's final answer in its normal form (None for an abstention), and its outcome
    (None where grading failed).
    """

    answer: str | None
    outcome: str | None


class Majority(NamedTuple):
    answer: str | None
    outcome: str
    confidence: float


@dataclass(frozen=True)
class Probed:
    """A question's samples, in the order in which they were drawn. `exposures` is how many
    documents state the least shown fact that it needs; None where nobody has counted."""

    question_id: str
    samples: tuple[Sample, ...]
    exposures: int | None = None

    def count(self, outcome: str | None) -> int:
        return sum(sample.outcome == outcome for sample in self.samples)

    def first(self, k: int) -> Probed:
        return Probed(self.question_id, self.samples[:k], self.exposures)

    @property
    def ook(self) -> bool | None:
        """Whether no sample is correct; None where none is and one could not be graded, or
        nothing was sampled.
        """
        if self.count(CORRECT):
            return False
        return None if self.count(None) or not self.samples else True

    @property
    def majority(self) -> Majority | None:
        """What most of the graded samples say; None where there is none. An answer has the
        outcome of its first sample.
        """
        graded = [sample for sample in self.samples if sample.outcome is not None]
        if not graded:
            return None
        # the first met, of equals
        answer, votes = Counter(sample.answer for sample in graded).most_common(1)[0]
        outcome = next(sample.outcome for sample in graded if sample.answer == answer)
        return Majority(answer, str(outcome), votes / len(graded))

    def to_row(self) -> dict[str, Any]:
        """The stored form: `given` lists the different samples, `drawn` says which of them each
        sample is.
        """
        places = {sample: place for place, sample in enumerate(dict.fromkeys(self.samples))}
        top = self.majority
        return {
            "question_id": self.question_id,
            "samples": len(self.samples),
            "correct": self.count(CORRECT),
            "abstained": self.count(UNCERTAIN),
            "wrong": self.count(INCORRECT),
            "failed": self.count(None),
            "ook": self.ook,
            "exposures": self.exposures,
            "majority": top.outcome if top else None,
            "answer": top.answer if top else None,
            "confidence": top.confidence if top else None,
            "given": [sample._asdict() for sample in places],
            "drawn": [places[sample] for sample in self.samples],
        }

    @staticmethod
    def from_row(row: Mapping[str, Any]) -> Probed:
        given = [Sample(one["answer"], one["outcome"]) for one in row["given"]]
        return Probed(
            row["question_id"], tuple(given[place] for place in row["drawn"]), row["exposures"]
        )


def boundary_report(rows: Sequence[Probed], k: int) -> dict[str, Any]:
    """Everything that the samples tell. `n` counts questions, `ook` those out of knowledge,
    `unsettled` those of which a failed sample leaves that open, `failed` samples. What is
    undefined is null."""
    settled = [row.ook for row in rows if row.ook is not None]
    tops = [(row.question_id, top) for row in rows if (top := row.majority)]
    answers = ranked(
        [
            Row(name, name, "scored", outcome=top.outcome, confidence=top.confidence)
            for name, top in tops
        ]
    )
    return {
        "k": k,
        "n": len(rows),
        "ook": sum(settled),
        "ook_share": share(sum(settled), len(settled)),
        "unsettled": len(rows) - len(settled),
        "failed": sum(row.count(None) for row in rows),
        "agreement": agreement(rows, k),
        "majority": {str(size): _majority(rows, size) for size in sizes(k)},
        "confidence_bins": confidence_bins([top for _, top in tops]),
        "risk_coverage": risk_coverage(answers),
        "aurc": float(areas(answers)[0][0]) if answers.right else None,
        "exposure": exposure(rows),
    }


def sizes(k: int) -> list[int]:
    """1, 2, 4, … and k itself."""
    return sorted({k, *(2**power for power in range(k.bit_length()))})


def agreement(rows: Sequence[Probed], k: int) -> dict[str, Any] | None:
    """Precision and recall of the label "out of knowledge" against the exposure counts: of the k
    samples, and `by_k` of the first 1, 2, 4, …; None where no question's facts were counted.
    Questions without a label are left out."""
    if not any(row.exposures is not None for row in rows):
        return None
    by_k = {str(size): _agreement(rows, size) for size in sizes(k)}
    return {**by_k[str(k)], "by_k": by_k}


def _agreement(rows: Sequence[Probed], k: int) -> dict[str, Any]:
    pairs = [(row.first(k).ook, row.exposures == 0) for row in rows if row.exposures is not None]
    both = sum(label is True and unknown for label, unknown in pairs)
    labelled = sum(label is True for label, _ in pairs)
    unknown = sum(unknown for label, unknown in pairs if label is not None)
    return {
        "precision": share(both, labelled),
        "recall": share(both, unknown),
        "labelled": labelled,
        "unknown": unknown,
        "both": both,
    }


def _majority(rows: Sequence[Probed], k: int) -> dict[str, Any]:
    outcomes = [top.outcome for row in rows if (top := row.first(k).majority)]
    return dict(zip(RATES, _shares(outcomes).values(), strict=False))


def confidence_bins(tops: Sequence[Majority], bins: int = BINS) -> list[dict[str, Any]]:
    """`{low, high, n, correct, abstain, wrong}` of each bin of confidence, half-open, the last
    one closed: shares of its n majorities; null in an empty bin."""
    return [
        {**edges, "n": len(outcomes), **_shares(outcomes)}
        for edges, outcomes in binned(((top.confidence, top.outcome) for top in tops), bins)
    ]


def exposure(rows: Sequence[Probed]) -> dict[str, dict[str, Any]] | None:
    """By number of exposures `{n, correct, abstain, wrong}`: how many questions, and shares of
    their graded samples; None where no question's facts were counted."""
    groups: dict[int, list[Probed]] = {}
    for row in rows:
        if row.exposures is not None:
            groups.setdefault(row.exposures, []).append(row)
    return {
        str(count): {
            "n": len(groups[count]),
            **_shares([sample.outcome for row in groups[count] for sample in row.samples]),
        }
        for count in sorted(groups)
    } or None


def _shares(outcomes: Sequence[str | None]) -> dict[str, float | None]:
    counts = [outcomes.count(outcome) for outcome in OUTCOMES]
    total = sum(counts)
    return {name: share(count, total) for name, count in zip(SHARES, counts, strict=True)}
