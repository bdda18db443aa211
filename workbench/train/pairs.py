"""Graded responses -> rows to train on, by the rules of the papers' baselines; each gives its
rows and their card.

A response that was not graded is used by no rule, and is counted. Nor is one that was cut off:
its end would be made up
*(ours)*, nor an empty one. Choices at random depend on `seed` and the question alone. What a
question's samples say of the policy's knowledge is asked of all of them that were graded: see
`none_correct`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from workbench.answers.sections import outlined, planned, well_formed
from workbench.metrics import outcome_of, rows_of
from workbench.metrics.claims import factual_sentences
from workbench.metrics.outcomes import outcome_failed
from workbench.metrics.rows import Row as Reduced
from workbench.train.picking import (
    Picked,
    check_most,
    counted,
    distinct,
    drawn,
    example_of,
    ids,
    made,
    text_of,
    unlearnable,
)
from workbench.train.rows import Card, Example, Pair
from workbench.types import REFUTED, Feedback, Question, WorkbenchError

ABSTENTION = "I don't know"
SAID = ("answer", "body")  # the sections whose claims a response makes to its reader

Phrase = Callable[[Question, str], str]  # a question and an answer to it -> the text to learn
# a question's graded samples -> whether it is out of the policy's knowledge
Unknown = Callable[[Sequence[Feedback]], bool]


def plain(question: Question, answer: str) -> str:
    """The answer as a sentence, as the tiny policy answers: "Oslo."."""
    return answer if answer.endswith((".", "!", "?")) else f"{answer}."


def boxed(question: Question, answer: str) -> str:
    r"""The answer in `\boxed{}`, where a prompt asks for that."""
    return rf"\boxed{{{answer}}}"


def none_correct(samples: Sequence[Feedback]) -> bool:
    """TruthRL's out-of-knowledge: none of the samples is correct (arXiv 2509.25760, section 3.1;
    there, of 256).

    Where one failed and none is correct, the rules leave the question out.
    """
    return all(outcome_of(sample) != "correct" for sample in samples)


def _open(unknown: Unknown) -> Unknown:
    """Whether failed samples leave it open what is out of knowledge; what is told from elsewhere
    is settled.
    """
    return unknown if unknown is none_correct else lambda samples: False


def gold(questions: Sequence[Question], phrase: Phrase = plain) -> tuple[list[Example], Card]:
    """SFT on gold answers: the first form of one, or all items of a list."""
    rows = [
        Example(question, phrase(question, _gold(question)))
        for question in questions
        if question.answers
    ]
    dropped = counted({"no gold answer": len(questions) - len(rows)})
    return rows, Card("gold", len(questions), 0, counted({"gold": len(rows)}), dropped)


def r_tuning(
    feedbacks: Sequence[Feedback],
    phrase: Phrase = plain,
    abstention: str = ABSTENTION,
    unknown: Unknown = none_correct,
) -> tuple[list[Example], Card]:
    """R-Tuning (arXiv 2311.09677) as TruthRL has it: gold answers, and `abstention` on what is
    out of knowledge.
    """

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Example]:
        if unknown(samples):
            return Picked([("abstention", Example(question, phrase(question, abstention)))])
        if not question.answers:
            return Picked(why="no gold answer")
        return Picked([("gold", Example(question, phrase(question, _gold(question))))])

    return made(
        "r_tuning",
        feedbacks,
        _unjudged,
        pick,
        left="asked for the knowledge alone",
        undecided=_open(unknown),
    )


def rft(
    feedbacks: Sequence[Feedback], most: int = 1, seed: int = 0, unknown: Unknown = none_correct
) -> tuple[list[Example], Card]:
    """Rejection sampling as TruthRL has it: traces that end in the right answer; out of
    knowledge, in an abstention.

    Of those, `most` different ones a question are drawn; the paper, of 64 samples at temperature
    .6 and top-p .9, selects "the trace".

    Raises:
        WorkbenchError: `most` is below 1.
    """
    check_most(most)

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Example]:
        wanted, kind = ("uncertain", "abstention") if unknown(samples) else ("correct", "correct")
        fits = distinct(
            [
                sample
                for sample in samples
                if outcome_of(sample) == wanted and not unlearnable(sample)
            ]
        )
        taken = drawn(fits, most, question, seed)
        left = {sample.response.id: _unlike(sample, wanted) for sample in samples}
        return Picked(
            [(kind, example_of(sample)) for sample in taken], ids(taken), left, f"no {kind} sample"
        )

    return made(
        "rft", feedbacks, _unjudged, pick, left="another was drawn", undecided=_open(unknown)
    )


def truthrl_pairs(
    feedbacks: Sequence[Feedback],
    phrase: Phrase = plain,
    abstention: str = ABSTENTION,
    most: int = 1,
    seed: int = 0,
    unknown: Unknown = none_correct,
) -> tuple[list[Pair], Card]:
    """TruthRL's DPO pairs (appendix A): correct over wrong; out of knowledge, "I don't know"
    over wrong. All are drawn.

    The abstention is one of the samples, in the form that the policy gives it, and `abstention`
    where there is none *(ours)*. A question without a wrong sample, or a known one whose right
    ones were all cut off, makes no pair.

    Raises:
        WorkbenchError: `most` is below 1.
    """
    check_most(most)

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Pair]:
        def of(outcome: str) -> list[Feedback]:
            fits = [s for s in samples if outcome_of(s) == outcome and not unlearnable(s)]
            return drawn(distinct(fits), None, question, seed)

        out = unknown(samples)
        kind, better = (
            ("abstention over wrong", of("uncertain"))
            if out
            else ("correct over wrong", of("correct"))
        )
        texts = [text_of(sample) for sample in better] or (
            [phrase(question, abstention)] if out else []
        )
        wrong = [sample for sample in of("incorrect") if text_of(sample) not in texts]
        count = min(most, len(wrong), len(texts))
        rows = [(kind, Pair(question, texts[i], text_of(wrong[i]))) for i in range(count)]
        left = {sample.response.id: why for sample in samples if (why := unlearnable(sample))}
        return Picked(
            rows,
            ids((*better[:count], *wrong[:count])),
            left,
            f"no {'correct' if wrong else 'wrong'} sample",
        )

    return made(
        "truthrl_pairs",
        feedbacks,
        _unjudged,
        pick,
        left="another was drawn",
        undecided=_open(unknown),
    )


def best_worst(feedbacks: Sequence[Feedback], method: str) -> tuple[list[Pair], Card]:
    """KLCF's DPO baseline (arXiv 2509.23765): of a question's samples, there 8, the best over
    the worst by reward.
    """

    def value(sample: Feedback) -> float:
        found = sample.rewards[method].value
        assert found is not None
        return found

    def unfit(sample: Feedback) -> str:
        reward = sample.rewards.get(method)
        if sample.error or reward is None or reward.value is None:
            return "failed"
        return unlearnable(sample)

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Pair]:
        best, worst = max(samples, key=value), min(samples, key=value)
        if value(best) == value(worst) or text_of(best) == text_of(worst):
            return Picked(why="one sample" if len(samples) == 1 else "tie")
        return Picked(
            [("best over worst", Pair(question, text_of(best), text_of(worst)))], ids((best, worst))
        )

    return made("best_worst", feedbacks, unfit, pick, left="neither best nor worst")


def facttune(
    feedbacks: Sequence[Feedback], most: int = 45, sections: Sequence[str] = SAID
) -> tuple[list[Pair], Card]:
    """FactTune-FS (Tian et al., arXiv 2311.08401): every two samples whose FactScores differ,
    the higher one preferred.

    FactScore is the share of a response's claims that are supported; a refusal has none and is
    left out. Of a question's pairs the `most` that lie furthest apart are taken *(ours; 45 are
    all of 10 samples)*.

    Raises:
        WorkbenchError: `most` is below 1.
    """
    check_most(most)
    reduced = _reduced(feedbacks, sections)

    def score(sample: Feedback) -> float:
        accuracy = reduced[sample.response.id].accuracy
        assert accuracy is not None, sample.response.id  # what makes no claim is left out before
        return accuracy

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Pair]:
        ranked = sorted(samples, key=score, reverse=True)
        couples = [
            (a, b)
            for a, b in combinations(ranked, 2)
            if score(a) > score(b) and text_of(a) != text_of(b)
        ]
        taken = sorted(couples, key=lambda couple: score(couple[1]) - score(couple[0]))[:most]
        rows = [("higher FactScore", Pair(question, text_of(a), text_of(b))) for a, b in taken]
        used = ids([sample for couple in taken for sample in couple])
        return Picked(rows, used, why="one sample" if len(samples) == 1 else "tie")

    return made(
        "facttune", feedbacks, lambda sample: _unscored(sample, reduced), pick, left="in no pair"
    )


def mle_filter(
    feedbacks: Sequence[Feedback], sections: Sequence[str] = SAID
) -> tuple[list[Example], Card]:
    """FoRAG's filtered MLE (arXiv 2406.13779, section 6.3): only responses all of whose
    sentences are factual.
    """
    return _by_factuality("mle_filter", feedbacks, sections)


def unlikely(
    feedbacks: Sequence[Feedback], sections: Sequence[str] = SAID, *, weight: float = 1.0
) -> tuple[list[Example], Card]:
    """FoRAG's unlikelihood (section 6.3): factual responses with weight 1, those with a wrong
    sentence with −`weight`.
    """
    if not 0 < weight <= 1:
        raise WorkbenchError(
            f"weight is {weight}: what is unlearnt weighs more than 0, and at most as much as what"
            " is learnt"
        )
    return _by_factuality("unlikely", feedbacks, sections, weight)


def cold_start_knowrl(
    feedbacks: Sequence[Feedback], right: bool = True, true: bool = True
) -> tuple[list[Example], Card]:
    """KnowRL's cold start: responses of the form `<think>…</think><answer>…</answer>`.

    `right` leaves out those whose outcome is incorrect, `true` those that make a wrong claim, in
    their thinking above all.
    """
    return _in_form(
        "cold_start_knowrl",
        feedbacks,
        lambda r: well_formed(r.response.text, r.response.prefill),
        right,
        true,
    )


def cold_start_forag(
    feedbacks: Sequence[Feedback], right: bool = False, true: bool = True
) -> tuple[list[Example], Card]:
    """FoRAG's cold start: responses of the form `[Structure] … [Outline] … [Answer] …` (section
    3.1); otherwise as KnowRL's.
    """
    return _in_form("cold_start_forag", feedbacks, lambda r: outlined(r.response.text), right, true)


def cold_start_written(feedbacks: Sequence[Feedback]) -> tuple[list[Example], Card]:
    """FoRAG's cold start as the paper has it: responses that a judge has written, whose form it
    was held to.
    """
    return _in_form("cold_start_written", feedbacks, lambda r: True, right=False, true=False)


def cold_start_plain(feedbacks: Sequence[Feedback]) -> tuple[list[Example], Card]:
    """What FoRAG's outlined answers are compared with (table 4): responses without any part of a
    plan, true or not *(ours)*.
    """
    return _in_form(
        "cold_start_plain",
        feedbacks,
        lambda r: not planned(r.response.text),
        right=False,
        true=False,
    )


def _by_factuality(
    rule: str, feedbacks: Sequence[Feedback], sections: Sequence[str], unlearn: float = 0.0
) -> tuple[list[Example], Card]:
    reduced = _reduced(feedbacks, sections)

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Example]:
        factual = [s for s in samples if all(factual_sentences(reduced[s.response.id]))]
        others = [s for s in samples if s not in factual] if unlearn else []
        rows = [
            *(("factual", example_of(s)) for s in factual),
            *(("not factual", example_of(s, -unlearn)) for s in others),
        ]
        return Picked(rows, ids((*factual, *others)), why="no factual sample")

    return made(
        rule, feedbacks, lambda sample: _unscored(sample, reduced), pick, left="not factual"
    )


def _in_form(
    rule: str,
    feedbacks: Sequence[Feedback],
    form: Callable[[Feedback], bool],
    right: bool,
    true: bool,
) -> tuple[list[Example], Card]:
    def unfit(sample: Feedback) -> str:
        if sample.error:
            return "failed"
        if why := unlearnable(sample):
            return why
        if not form(sample):
            return "another form"
        return (
            right
            and (
                _unjudged(sample) or ("wrong outcome" if outcome_of(sample) == "incorrect" else "")
            )
        ) or (_untrue(sample) if true else "")

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Example]:
        return Picked([("in form", example_of(sample)) for sample in samples], ids(samples))

    return made(rule, feedbacks, unfit, pick, left="")


def _untrue(sample: Feedback) -> str:
    """Why the claims of a response do not let it be learnt from; "" if none of them is wrong."""
    if not sample.sentences and not sample.claims:
        return "not read for claims"
    verdicts = [sample.verdict(f"claim:{claim.id}", "fact") for claim in sample.claims]
    if any(verdict is None or verdict.error or verdict.label is None for verdict in verdicts):
        return "failed"
    return (
        "wrong claim" if any(verdict and verdict.label in REFUTED for verdict in verdicts) else ""
    )


def _unjudged(sample: Feedback) -> str:
    if outcome_of(sample) is not None:
        return ""
    return "failed" if outcome_failed(sample) else "no outcome"


def _reduced(feedbacks: Sequence[Feedback], sections: Sequence[str]) -> dict[str, Reduced]:
    return {row.id: row for row in rows_of(feedbacks, sections)}


def _unscored(sample: Feedback, reduced: Mapping[str, Reduced]) -> str:
    """Why a response has no share of supported claims, in words; "" if it has one."""
    words = {
        "abstained": "refusal",
        "no_claims": "no claims",
        "unverified": "failed",
        "not_judged": "not judged",
    }
    state = reduced[sample.response.id].state
    return words.get(state, state) if state != "scored" else unlearnable(sample)


def _unlike(sample: Feedback, wanted: str) -> str:
    """Why a sample is no trace to learn from, where it is not that another one was drawn."""
    outcome = outcome_of(sample) or ""
    return outcome if outcome != wanted else unlearnable(sample) or "another was drawn"


def _gold(question: Question) -> str:
    return " and ".join(question.answers) if question.kind == "list" else question.answers[0]
