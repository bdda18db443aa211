"""Estimate the boundary of a policy's knowledge from k samples of each question.

A question is *out of knowledge* (OOK) if all its k samples are abstentions or wrong (TruthRL, arXiv
2509.25760, section 3.2; 256 samples in the appendix). In the closed world, the true label is known
as well: a question is out of knowledge if it needs a fact that no training document states.
`agreement` compares the label from samples with the true label.

* The majority answer is the most frequent answer of the samples, after normalisation by
  `workbench.text`. All abstentions count as the same answer. In a tie, the answer that was sampled
  first wins *(ours)*.
* Confidence is the share of samples that give the majority answer *(ours: the paper's figure does
  not define it)*. Log-probabilities are not used.
* The majority answer and the confidence ignore samples that could not be graded.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workbench.metrics.confidence import areas, ranked, risk_coverage
from workbench.metrics.distributions import binned
from workbench.metrics.outcomes import RATES
from workbench.metrics.rows import Row, share
from workbench.types import OUTCOMES, JsonMapping, JsonObject
from workbench.util.grouping import group_by

CORRECT, UNCERTAIN, INCORRECT = OUTCOMES
SHARES = ("correct", "abstain", "wrong")  # names of shares of samples, in the order of OUTCOMES
BINS = 10  # number of bins of confidence, of equal width
# Normalised answers are cut to this many characters; answers with an equal start count as equal.
ANSWER_CHARACTERS = 200


class Sample(NamedTuple):
    """One sampled answer to a question: its final answer and its outcome."""

    answer: str | None  # in its normal form; None for an abstention
    outcome: str | None  # None where grading failed


class Majority(NamedTuple):
    """A question's most frequent answer, its outcome, and its share of the graded samples."""

    answer: str | None
    outcome: str
    confidence: float


@dataclass(frozen=True)
class Probed:
    """A question with its sampled answers, in the order in which they were sampled."""

    question_id: str
    samples: tuple[Sample, ...]
    # Documents that state the rarest fact that the question needs; None if not counted.
    exposures: int | None = None

    def count(self, outcome: str | None) -> int:
        """Return the number of samples with this outcome; None counts ungraded samples."""
        return sum(sample.outcome == outcome for sample in self.samples)

    def first(self, k: int) -> "Probed":
        """Return a copy that has only the first k samples."""
        return Probed(self.question_id, self.samples[:k], self.exposures)

    @property
    def ook(self) -> bool | None:
        """Whether the question is out of knowledge, that is, no sample is correct.

        None if this is not known: there are no samples, or no sample is correct but one could not
        be graded.
        """
        if self.count(CORRECT):
            return False
        return None if self.count(None) or not self.samples else True

    @property
    def majority(self) -> Majority | None:
        """The most frequent answer of the graded samples; None if no sample was graded.

        In a tie, it is the answer that was sampled first. Its outcome is the outcome of the first
        sample with this answer.
        """
        graded = [sample for sample in self.samples if sample.outcome is not None]
        if not graded:
            return None
        # of equal counts, most_common returns the answer that came first
        answer, votes = Counter(sample.answer for sample in graded).most_common(1)[0]
        outcome = next(sample.outcome for sample in graded if sample.answer == answer)
        return Majority(answer, str(outcome), votes / len(graded))

    def to_row(self) -> JsonObject:
        """Return the question, its samples and their statistics as a JSON object.

        `given` lists the distinct samples. `drawn` has, for each sample, its index in `given`.
        `from_row` reads the object.
        """
        indices = {sample: index for index, sample in enumerate(dict.fromkeys(self.samples))}
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
            "given": [sample._asdict() for sample in indices],
            "drawn": [indices[sample] for sample in self.samples],
        }

    @staticmethod
    def from_row(row: JsonMapping) -> "Probed":
        """Convert the result of `to_row` back to a `Probed`."""
        distinct = [Sample(stored["answer"], stored["outcome"]) for stored in row["given"]]
        samples = tuple(distinct[index] for index in row["drawn"])
        return Probed(row["question_id"], samples, row["exposures"])


def boundary_report(rows: Sequence[Probed], k: int) -> JsonObject:
    """Return the statistics of questions with k samples each; undefined values are None.

    * `n`: number of questions.
    * `ook`: number of questions that are out of knowledge.
    * `unsettled`: number of questions for which this is not known (`Probed.ook` is None).
    * `ook_share`: `ook` / (`n` − `unsettled`).
    * `failed`: number of samples that could not be graded.
    * `majority`: number of samples (1, 2, 4, …, k) -> accuracy, abstention and hallucination of the
      majority answers.
    * `aurc`: area under the risk–coverage curve of the majority answers.
    * `agreement`: how well the label "out of knowledge" agrees with the truth.
    * `confidence_bins`, `risk_coverage`: correctness of the majority answers by their confidence.
    * `exposure`: outcomes by number of training documents.

    `agreement`, `confidence_bins`, `risk_coverage` and `exposure` are the results of the functions
    with these names.
    """
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
    """Return the powers of two up to k, and k itself: 6 → [1, 2, 4, 6]."""
    return sorted({k, *(2**power for power in range(k.bit_length()))})


def agreement(rows: Sequence[Probed], k: int) -> JsonObject | None:
    """Return how well the label "out of knowledge" from k samples agrees with the truth.

    The label of a question is `Probed.ook` of its first k samples. In truth, a question of the
    closed world is out of knowledge if it needs a fact that no training document states
    (`Probed.exposures` is 0).

    * `labelled`: number of questions that are out of knowledge by the label.
    * `unknown`: number of questions that are out of knowledge in truth.
    * `both`: number of questions that are out of knowledge by the label and in truth.
    * `precision`, `recall`: `both / labelled` and `both / unknown`; None if the denominator is 0.
    * `by_k`: number of samples (1, 2, 4, …, k) -> these five entries.

    Questions whose label is None are left out. Return None if no question has exposure counts.
    """
    if not any(row.exposures is not None for row in rows):
        return None
    by_k = {str(size): _agreement(rows, size) for size in sizes(k)}
    return {**by_k[str(k)], "by_k": by_k}


def _agreement(rows: Sequence[Probed], k: int) -> JsonObject:
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


def _majority(rows: Sequence[Probed], k: int) -> JsonObject:
    outcomes = [top.outcome for row in rows if (top := row.first(k).majority)]
    return dict(zip(RATES, _shares(outcomes).values(), strict=False))


def confidence_bins(tops: Sequence[Majority]) -> list[JsonObject]:
    """Group majority answers by confidence into 10 (`BINS`) bins of equal width.

    A bin is `{low, high, n, correct, abstain, wrong}`. `n` is the number of majority answers in the
    bin. `correct`, `abstain` and `wrong` are shares of these answers; None in an empty bin. A bin
    includes `low` but not `high`. The last bin includes 1.
    """
    return [
        {**edges, "n": len(outcomes), **_shares(outcomes)}
        for edges, outcomes in binned(((top.confidence, top.outcome) for top in tops), BINS)
    ]


def exposure(rows: Sequence[Probed]) -> dict[str, JsonObject] | None:
    """Return shares of outcomes by exposure: `{"0": {n, correct, abstain, wrong}, "3": …}`.

    The exposure of a question is the number of training documents that state its rarest fact. `n`
    counts questions; the other values are shares of their graded samples, None if no sample was
    graded. Return None if no question has exposure counts.
    """
    groups = group_by(rows, lambda row: row.exposures)
    groups.pop(None, None)
    return {
        str(count): {
            "n": len(own),
            **_shares([sample.outcome for row in own for sample in row.samples]),
        }
        for count, own in sorted(groups.items())
    } or None


def _shares(outcomes: Sequence[str | None]) -> dict[str, float | None]:
    counts = [outcomes.count(outcome) for outcome in OUTCOMES]
    total = sum(counts)
    return {name: share(count, total) for name, count in zip(SHARES, counts, strict=True)}
