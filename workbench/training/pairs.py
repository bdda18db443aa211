"""Select SFT rows and DPO pairs from graded responses, by the rules of the papers' baselines.

Each rule is a function that returns training rows and a `Card`. The card counts the questions and
samples that were left out. Responses that could not be graded, are empty or were cut off *(ours)*
are never used. Random choices depend only on `seed` and the question.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from workbench.metrics import outcome_of, rows_of
from workbench.metrics.claims import factual_sentences
from workbench.metrics.outcomes import outcome_failed
from workbench.metrics.rows import Row as Reduced
from workbench.pipeline import ANSWER_SECTIONS
from workbench.text.sections import outlined, planned, well_formed
from workbench.training.recorder import reward_of
from workbench.training.rows import Card, Example, Pair, Row
from workbench.types import REFUTED, Feedback, Question
from workbench.util.grouping import group_by

ABSTENTION = "I don't know"
Examples = tuple[list[Example], Card]


# FoRAG's cold starts: rule -> function that returns whether a text has the form to learn
COLD_STARTS: Mapping[str, Callable[[str], bool]] = {
    # `[Structure] … [Outline] … [Answer] …` (arXiv 2406.13779, section 3.1)
    "cold_start_forag": outlined,
    # as in the paper: a judge wrote the text
    "cold_start_written": lambda text: True,
    # the baseline without outlines (table 4): no part of a plan *(ours)*
    "cold_start_plain": lambda text: not planned(text),
}


@dataclass(frozen=True)
class Picked(Generic[Row]):
    """The training rows that a rule made from the samples of one question.

    Attributes:
        rows: pairs (kind, training row); the kind is a name such as "correct over wrong".
        used: ids of the samples that the rows contain.
        why: if there is no row, the reason.
    """

    rows: Sequence[tuple[str, Row]] = ()
    used: frozenset[str] = frozenset()
    why: str = ""


def phrase(question: Question, answer: str) -> str:
    r"""Return an answer in the form that the question's system prompt asks for.

    `'Paris'` → `'\boxed{Paris}'` if the system prompt mentions `\boxed`, otherwise `'Paris.'`. An
    answer that ends in a mark of punctuation or a tag ("</answer>") gets no period.
    """
    if r"\boxed" in question.system:
        return rf"\boxed{{{answer}}}"
    return answer if answer.endswith((".", "!", "?", ">")) else f"{answer}."


def none_correct(samples: Sequence[Feedback]) -> bool:
    """Return whether no sample of a question has a correct final answer.

    With many samples, such a question is out of the policy's knowledge (TruthRL, arXiv 2509.25760,
    section 3.1; the paper takes 256 samples).
    """
    return all(outcome_of(sample) != "correct" for sample in samples)


def gold(questions: Sequence[Question]) -> Examples:
    """Return SFT rows that teach the gold answers of the questions, and their `Card`.

    The text of a row is the first gold answer, or all gold answers if the question asks for a list.
    Questions without a gold answer have no row.
    """
    rows = [
        Example(question, phrase(question, _gold(question)))
        for question in questions
        if question.answers
    ]
    dropped = _counted({"no gold answer": len(questions) - len(rows)})
    return rows, Card("gold", len(questions), 0, _counted({"gold": len(rows)}), dropped)


def r_tuning(feedbacks: Sequence[Feedback]) -> Examples:
    """Return SFT rows for R-Tuning (arXiv 2311.09677) in TruthRL's variant, and their `Card`.

    There is at most one row per question. Its text is the gold answer or, if no sample of the
    question has a correct final answer, "I don't know".
    """

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Example]:
        if none_correct(samples):
            kind, answer = "abstention", ABSTENTION
        elif question.answers:
            kind, answer = "gold", _gold(question)
        else:
            return Picked(why="no gold answer")
        return Picked([(kind, Example(question, phrase(question, answer)))])

    return _made("r_tuning", feedbacks, _unjudged, pick, undecided=none_correct)


def rft(feedbacks: Sequence[Feedback], seed: int = 0) -> Examples:
    """Return SFT rows for rejection sampling (RFT) in TruthRL's variant, and their `Card`.

    There is at most one row per question. Its text is a random correct sample. If no sample is
    correct, its text is a random sample that abstains. The paper takes 64 samples per question, at
    temperature 0.6 and top-p 0.9.
    """

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Example]:
        unknown = none_correct(samples)
        outcome, kind = ("uncertain", "abstention") if unknown else ("correct", "correct")
        chosen = _shuffled(samples, outcome, question, seed)[:1]
        rows = [(kind, _example(sample)) for sample in chosen]
        return Picked(rows, _ids(chosen), f"no {kind} sample")

    return _made("rft", feedbacks, _unjudged, pick, undecided=none_correct)


def truthrl_pairs(feedbacks: Sequence[Feedback], seed: int = 0) -> tuple[list[Pair], Card]:
    """Return TruthRL's DPO pairs (appendix A), at most one for each question, and their `Card`.

    The rejected answer is a random wrong sample. A question without a wrong sample has no pair. The
    preferred answer is a random correct sample. If no sample is correct, the preferred answer is a
    random sample that abstains. If no sample abstains, it is "I don't know" *(ours)*.
    """

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Pair]:
        unknown = none_correct(samples)
        kind, outcome = (
            ("abstention over wrong", "uncertain") if unknown else ("correct over wrong", "correct")
        )
        better = _shuffled(samples, outcome, question, seed)
        texts = [_text(sample) for sample in better]
        if unknown and not texts:
            texts = [phrase(question, ABSTENTION)]
        # a text that counts as better must not also be rejected
        wrong = [
            sample
            for sample in _shuffled(samples, "incorrect", question, seed)
            if _text(sample) not in texts
        ]
        if not wrong or not texts:
            return Picked(why=f"no {'correct' if wrong else 'wrong'} sample")
        pair = Pair(question, texts[0], _text(wrong[0]))
        return Picked([(kind, pair)], _ids((*better[:1], wrong[0])))

    return _made("truthrl_pairs", feedbacks, _unjudged, pick, undecided=none_correct)


def best_worst(feedbacks: Sequence[Feedback], method: str) -> tuple[list[Pair], Card]:
    """Return the pairs of KLCF's DPO baseline (arXiv 2509.23765), and their `Card`.

    For each question, the preferred answer is the sample with the highest reward, and the rejected
    answer is the sample with the lowest. If the two rewards or the two texts are equal, there is no
    pair. The paper takes 8 samples of each question.

    Args:
        method: name of the reward to compare.
    """

    def value(sample: Feedback) -> float:
        reward = reward_of(sample, method)
        assert reward is not None  # `unfit` removes samples without a reward
        return reward

    def unfit(sample: Feedback) -> str:
        return "failed" if reward_of(sample, method) is None else _unlearnable(sample)

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Pair]:
        # the first of equal samples, so that the pair is reproducible
        best, worst = max(samples, key=value), min(samples, key=value)
        if value(best) == value(worst) or _text(best) == _text(worst):
            return Picked(why="one sample" if len(samples) == 1 else "tie")
        pair = Pair(question, _text(best), _text(worst))
        return Picked([("best over worst", pair)], _ids((best, worst)))

    return _made("best_worst", feedbacks, unfit, pick)


def by_factuality(feedbacks: Sequence[Feedback], unlearn: float = 0.0) -> Examples:
    """Return SFT rows for two baselines of FoRAG (arXiv 2406.13779, section 6.3), and their `Card`.

    With `unlearn=0` ("filtered MLE"), the rows are the responses in which every sentence is
    factual. With `unlearn` > 0 ("unlikelihood"), the other responses are rows too, with the weight
    −`unlearn`.
    """
    reduced = {row.id: row for row in rows_of(feedbacks, ANSWER_SECTIONS)}

    def pick(question: Question, samples: Sequence[Feedback]) -> Picked[Example]:
        factual = [s for s in samples if all(factual_sentences(reduced[s.response.id]))]
        others = [s for s in samples if s not in factual] if unlearn else []
        rows = [
            *(("factual", _example(s)) for s in factual),
            *(("not factual", _example(s, -unlearn)) for s in others),
        ]
        return Picked(rows, _ids((*factual, *others)), why="no factual sample")

    rule = "unlikely" if unlearn else "mle_filter"
    return _made(rule, feedbacks, lambda sample: _unscored(sample, reduced), pick)


def cold_start_knowrl(feedbacks: Sequence[Feedback]) -> Examples:
    """Return SFT rows for KnowRL's cold start, and their `Card`.

    A response becomes a row if it meets three conditions:

    * It has the form `<think>…</think><answer>…</answer>`.
    * Its final answer is correct or an abstention.
    * It has no wrong claim.
    """

    def unfit(sample: Feedback) -> str:
        if not well_formed(sample.response.text, sample.response.prefill):
            return "another form"
        if why := _unjudged(sample):
            return why
        return "wrong outcome" if outcome_of(sample) == "incorrect" else _untrue(sample)

    return _in_form("cold_start_knowrl", feedbacks, unfit)


def cold_start(feedbacks: Sequence[Feedback], rule: str, factual: bool = False) -> Examples:
    """Select responses as SFT rows for FoRAG's cold start, and count them in a `Card`.

    Args:
        feedbacks: the graded responses.
        rule: "cold_start_forag" selects the responses of the form "[Structure] … [Outline] …
            [Answer] …", "cold_start_plain" those without any of these markers, and
            "cold_start_written" all responses (the paper's variant: a judge wrote them).
        factual: select only responses in which every sentence is factual.
    """
    form = COLD_STARTS[rule]
    reduced = {row.id: row for row in rows_of(feedbacks, ANSWER_SECTIONS)} if factual else {}

    def unfit(sample: Feedback) -> str:
        if not form(sample.response.text):
            return "another form"
        if not factual:
            return ""
        row = reduced[sample.response.id]
        return _unscored(sample, reduced) or ("" if all(factual_sentences(row)) else "not factual")

    return _in_form(rule, feedbacks, unfit)


def _in_form(rule: str, feedbacks: Sequence[Feedback], form: Callable[[Feedback], str]) -> Examples:
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
    """Apply a rule to the samples of each question; return the training rows and their `Card`.

    Args:
        rule: name of the rule.
        unfit: returns why a sample cannot be used, or "".
        pick: returns the rows of a question from its usable samples.
        undecided: called with the usable samples of a question that also has unusable ones. If it
            returns True, an unusable sample could have changed the rows, and the question is left
            out.
    """
    rows, kinds = list[Row](), Counter[str]()
    questions, samples = Counter[str](), Counter[str]()
    groups = group_by(feedbacks, lambda feedback: feedback.response.question.id)
    for group in groups.values():
        reasons = [unfit(feedback) for feedback in group]
        sound = [feedback for feedback, why in zip(group, reasons, strict=True) if not why]
        samples.update(why for why in reasons if why)
        if not sound:
            picked = Picked[Row](why="no usable sample")
        # the failed sample might have been the correct one
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
    """Return the samples with the outcome `outcome` in random order.

    Samples that were cut off or are empty are left out. Samples with equal texts occur once.
    """
    usable = [s for s in samples if outcome_of(s) == outcome and not _unlearnable(s)]
    # a dict keeps the last value of a key, so the reversed order keeps a text's first sample
    distinct = list({sample.response.text: sample for sample in reversed(usable)}.values())[::-1]
    # seeded by the question, so that other questions do not change the order
    return random.Random(f"pairs-{seed}-{question.id}").sample(distinct, len(distinct))


def _example(sample: Feedback, weight: float = 1.0) -> Example:
    return Example(sample.response.question, _text(sample), weight, sample.response.id)


def _text(sample: Feedback) -> str:
    """Return the text of a sample; if its prompt ended with an opening tag, the tag comes first."""
    return sample.response.prefill + sample.response.text


def _ids(samples: Sequence[Feedback]) -> frozenset[str]:
    return frozenset(sample.response.id for sample in samples)


def _gold(question: Question) -> str:
    return " and ".join(question.answers) if question.kind == "list" else question.answers[0]


# These functions return why a sample is not used, or "".


def _unlearnable(sample: Feedback) -> str:
    if sample.response.finish != "stop":
        return "cut off"  # its text would teach the policy to stop early
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
