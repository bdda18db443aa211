"""Graded responses -> rows to train on, by the rules of the papers' baselines; each returns its
rows and their card, which counts everything that is left out.

No rule uses a response that was not graded, was cut off (its end would be made up, *(ours)*) or
is empty. Random choices depend on `seed` and the question alone. Every graded sample of a
question counts for what the policy knows: see `none_correct`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from workbench.metrics import outcome_of, rows_of
from workbench.metrics.claims import factual_sentences
from workbench.metrics.outcomes import outcome_failed
from workbench.metrics.rows import Row as Reduced
from workbench.text.sections import outlined, planned, well_formed
from workbench.training.recorder import reward_of
from workbench.training.rows import Card, Example, Pair, Row
from workbench.types import REFUTED, Feedback, Question, WorkbenchError

ABSTENTION = "I don't know"
SAID = ("answer", "body")  # the sections whose claims a response makes to its reader

Phrase = Callable[[Question, str], str]  # a question and an answer to it -> the text to learn


@dataclass(frozen=True)
class Picked(Generic[Row]):
    """What a rule makes of a question: rows by kind, the ids of the samples in them, and the
    reason where there is no row."""

    rows: Sequence[tuple[str, Row]] = ()
    used: frozenset[str] = frozenset()
    why: str = ""


def plain(question: Question, answer: str) -> str:
    """The answer as a sentence, as the tiny policy answers: "Oslo."."""
    return answer if answer.endswith((".", "!", "?")) else f"{answer}."


def boxed(question: Question, answer: str) -> str:
    r"""The answer in `\boxed{}`, where a prompt asks for that."""
    return rf"\boxed{{{answer}}}"


def none_correct(samples: Sequence[Feedback]) -> bool:
    """Whether a question is out of the policy's knowledge: none of its samples is correct
    (TruthRL, arXiv 2509.25760, section 3.1; there, of 256).

    Where one failed and none is correct, the rules leave the question out.
    """
    return all(outcome_of(sample) != "correct" for sample in samples)


def gold(questions: Sequence[Question], phrase: Phrase = plain) -> tuple[list[Example], Card]:
    """SFT on gold answers: the first form of one, or all items of a list."""
    rows = [
        Example(question, phrase(question, _gold(question)))
        for question in questions
        if question.answers
    ]
    dropped = _counted({"no gold answer": len(questions) - len(rows)})
    return rows, Card("gold", len(questions), 0, _counted({"gold": len(rows)}), dropped)


def r_tuning(feedbacks: Sequence[Feedback], phrase: Phrase = plain) -> tuple[list[Example], Card]:
    """R-Tuning (arXiv 2311.09677) as TruthRL has it: gold answers, and an abstention where the
    question is out of knowledge.
    """

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Example]:
        if none_correct(samples):
            return Picked([("abstention", Example(question, phrase(question, ABSTENTION)))])
        if not question.answers:
            return Picked(why="no gold answer")
        return Picked([("gold", Example(question, phrase(question, _gold(question))))])

    return _made("r_tuning", feedbacks, _unjudged, pick, undecided=none_correct)


def rft(feedbacks: Sequence[Feedback], seed: int = 0) -> tuple[list[Example], Card]:
    """Rejection sampling as TruthRL has it: one trace a question that ends in the right answer;
    out of knowledge, in an abstention. The paper selects "the trace" of 64 samples at temperature
    .6 and top-p .9.
    """

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Example]:
        out = none_correct(samples)
        wanted, kind = ("uncertain", "abstention") if out else ("correct", "correct")
        taken = _shuffled(samples, wanted, question, seed)[:1]
        rows = [(kind, _example(sample)) for sample in taken]
        return Picked(rows, _ids(taken), f"no {kind} sample")

    return _made("rft", feedbacks, _unjudged, pick, undecided=none_correct)


def truthrl_pairs(
    feedbacks: Sequence[Feedback], phrase: Phrase = plain, seed: int = 0
) -> tuple[list[Pair], Card]:
    """TruthRL's DPO pairs (appendix A), one a question: correct over wrong; out of knowledge, "I
    don't know" over wrong.

    The abstention is one of the samples, in the form that the policy gives it, and `ABSTENTION`
    where there is none *(ours)*. A question without a wrong sample, or a known one whose right
    ones were all cut off, makes no pair.
    """

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Pair]:
        out = none_correct(samples)
        kind, wanted = (
            ("abstention over wrong", "uncertain") if out else ("correct over wrong", "correct")
        )
        better = _shuffled(samples, wanted, question, seed)
        texts = [_text(sample) for sample in better]
        if out and not texts:
            texts = [phrase(question, ABSTENTION)]
        wrong = _shuffled(samples, "incorrect", question, seed)
        wrong = [sample for sample in wrong if _text(sample) not in texts]
        if not wrong or not texts:
            return Picked(why=f"no {'correct' if wrong else 'wrong'} sample")
        pair = Pair(question, texts[0], _text(wrong[0]))
        return Picked([(kind, pair)], _ids((*better[:1], wrong[0])))

    return _made("truthrl_pairs", feedbacks, _unjudged, pick, undecided=none_correct)


def best_worst(feedbacks: Sequence[Feedback], method: str) -> tuple[list[Pair], Card]:
    """KLCF's DPO baseline (arXiv 2509.23765): of a question's samples, there 8, the best over
    the worst by reward.
    """

    def value(sample: Feedback) -> float:
        found = reward_of(sample, method)
        assert found is not None
        return found

    def unfit(sample: Feedback) -> str:
        return "failed" if reward_of(sample, method) is None else _unlearnable(sample)

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Pair]:
        best, worst = max(samples, key=value), min(samples, key=value)
        if value(best) == value(worst) or _text(best) == _text(worst):
            return Picked(why="one sample" if len(samples) == 1 else "tie")
        pair = Pair(question, _text(best), _text(worst))
        return Picked([("best over worst", pair)], _ids((best, worst)))

    return _made("best_worst", feedbacks, unfit, pick)


def mle_filter(feedbacks: Sequence[Feedback]) -> tuple[list[Example], Card]:
    """FoRAG's filtered MLE (arXiv 2406.13779, section 6.3): only responses all of whose
    sentences are factual.
    """
    return _by_factuality("mle_filter", feedbacks)


def unlikely(feedbacks: Sequence[Feedback], weight: float = 1.0) -> tuple[list[Example], Card]:
    """FoRAG's unlikelihood (section 6.3): factual responses with weight 1, those with a wrong
    sentence with −`weight`, above 0 and at most 1.
    """
    if not 0 < weight <= 1:
        raise WorkbenchError(f"weight is {weight}: it must be above 0 and at most 1")
    return _by_factuality("unlikely", feedbacks, weight)


def cold_start_knowrl(feedbacks: Sequence[Feedback]) -> tuple[list[Example], Card]:
    """KnowRL's cold start: responses of the form `<think>…</think><answer>…</answer>` with a
    right answer or a refusal, and no wrong claim.
    """

    def unfit(sample: Feedback) -> str:
        if not well_formed(sample.response.text, sample.response.prefill):
            return "another form"
        if why := _unjudged(sample):
            return why
        return "wrong outcome" if outcome_of(sample) == "incorrect" else _untrue(sample)

    return _in_form("cold_start_knowrl", feedbacks, unfit)


def cold_start_forag(feedbacks: Sequence[Feedback]) -> tuple[list[Example], Card]:
    """FoRAG's cold start: responses of the form `[Structure] … [Outline] … [Answer] …` (section
    3.1), true or not.
    """
    return _in_form(
        "cold_start_forag",
        feedbacks,
        lambda sample: "" if outlined(sample.response.text) else "another form",
    )


def cold_start_written(feedbacks: Sequence[Feedback]) -> tuple[list[Example], Card]:
    """FoRAG's cold start as the paper has it: responses that a judge has written in the form."""
    return _in_form("cold_start_written", feedbacks)


def cold_start_plain(feedbacks: Sequence[Feedback]) -> tuple[list[Example], Card]:
    """The baseline of FoRAG's outlined answers (table 4): responses without any part of a plan,
    true or not *(ours)*.
    """
    return _in_form(
        "cold_start_plain",
        feedbacks,
        lambda sample: "another form" if planned(sample.response.text) else "",
    )


def _by_factuality(
    rule: str, feedbacks: Sequence[Feedback], unlearn: float = 0.0
) -> tuple[list[Example], Card]:
    reduced = {row.id: row for row in rows_of(feedbacks, SAID)}

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Example]:
        factual = [s for s in samples if all(factual_sentences(reduced[s.response.id]))]
        others = [s for s in samples if s not in factual] if unlearn else []
        rows = [
            *(("factual", _example(s)) for s in factual),
            *(("not factual", _example(s, -unlearn)) for s in others),
        ]
        return Picked(rows, _ids((*factual, *others)), why="no factual sample")

    return _made(rule, feedbacks, lambda sample: _unscored(sample, reduced), pick)


def _in_form(
    rule: str, feedbacks: Sequence[Feedback], form: Callable[[Feedback], str] = lambda sample: ""
) -> tuple[list[Example], Card]:
    def unfit(sample: Feedback) -> str:
        return "failed" if sample.error else _unlearnable(sample) or form(sample)

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Example]:
        return Picked([("in form", _example(sample)) for sample in samples], _ids(samples))

    return _made(rule, feedbacks, unfit, pick)


def _made(
    rule: str,
    feedbacks: Sequence[Feedback],
    unfit: Callable[[Feedback], str],
    pick: Callable[[Question, Sequence[Feedback]], Picked[Row]],
    undecided: Callable[[Sequence[Feedback]], bool] = lambda sound: False,
) -> tuple[list[Row], Card]:
    """For each question drop the `unfit` samples, let `pick` choose among the rest, count both.

    No row is made if samples were dropped and `undecided` holds for the rest, because the dropped
    samples could have changed the choice.
    """
    rows, kinds = list[Row](), Counter[str]()
    questions, samples = Counter[str](), Counter[str]()
    groups: dict[str, list[Feedback]] = {}
    for feedback in feedbacks:
        groups.setdefault(feedback.response.question.id, []).append(feedback)
    for group in groups.values():
        reasons = [unfit(feedback) for feedback in group]
        sound = [feedback for feedback, why in zip(group, reasons, strict=True) if not why]
        samples.update(why for why in reasons if why)
        if not sound:
            picked = Picked[Row](why="no usable sample")
        elif len(sound) < len(group) and undecided(sound):
            picked = Picked[Row](why="unsettled: a sample failed")
        else:
            picked = pick(group[0].response.question, sound)
        rows += [row for _, row in picked.rows]
        kinds.update(kind for kind, _ in picked.rows)
        questions.update([] if picked.rows else [picked.why])
        samples.update(
            _unlearnable(f) or "not picked" for f in sound if f.response.id not in picked.used
        )
    return rows, Card(
        rule, len(groups), len(feedbacks), _counted(kinds), _counted(questions), _counted(samples)
    )


def _counted(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in sorted(counts.items()) if count}


def _shuffled(
    samples: Sequence[Feedback], outcome: str, question: Question, seed: int
) -> list[Feedback]:
    """The samples of that outcome that can be learnt from, each text once, in random order."""
    fits = [s for s in samples if outcome_of(s) == outcome and not _unlearnable(s)]
    distinct = list({sample.response.text: sample for sample in reversed(fits)}.values())[::-1]
    return random.Random(f"pairs-{seed}-{question.id}").sample(distinct, len(distinct))


def _example(sample: Feedback, weight: float = 1.0) -> Example:
    return Example(sample.response.question, _text(sample), weight, sample.response.id)


def _text(sample: Feedback) -> str:
    """All that stands after the prompt's role header: a tag that the prompt opened is part of
    the text.
    """
    return sample.response.prefill + sample.response.text


def _ids(samples: Sequence[Feedback]) -> frozenset[str]:
    return frozenset(sample.response.id for sample in samples)


def _gold(question: Question) -> str:
    return " and ".join(question.answers) if question.kind == "list" else question.answers[0]


# Why a sample is not used; "" if it is.


def _unlearnable(sample: Feedback) -> str:
    if sample.response.finish != "stop":
        return "cut off"
    return "" if sample.response.text.strip() else "empty"


def _unjudged(sample: Feedback) -> str:
    if outcome_of(sample) is not None:
        return ""
    return "failed" if outcome_failed(sample) else "no outcome"


def _untrue(sample: Feedback) -> str:
    if not sample.sentences and not sample.claims:
        return "not read for claims"
    verdicts = [sample.verdict(f"claim:{claim.id}", "fact") for claim in sample.claims]
    if any(verdict is None or verdict.error or verdict.label is None for verdict in verdicts):
        return "failed"
    wrong = any(verdict and verdict.label in REFUTED for verdict in verdicts)
    return "wrong claim" if wrong else ""


def _unscored(sample: Feedback, reduced: Mapping[str, Reduced]) -> str:
    state = reduced[sample.response.id].state
    if state == "scored":
        return _unlearnable(sample)
    return "failed" if state == "unverified" else state
