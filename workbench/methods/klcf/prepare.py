"""Prepare KLCF's data before training (arXiv 2509.23765, section 2.2).

The base model answers the training questions, and the claims of its answers get verdicts. From
these, `prepare` makes checklists, and labelled claims for the truthfulness model. It writes, in
this order:

* `samples/`: samples of the base model with claims and verdicts. A killed call continues from them.
* `checklists.jsonl`: rows `{question_id, items}`
* `truth.jsonl`: rows `{question_id, claim, label}`
* `card.json`: the inputs, and counts of every step
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from workbench.methods.klcf.checklists import OUTCOMES, checklists, known, truth_rows
from workbench.methods.klcf.config import Prepare
from workbench.methods.klcf.facts import QuestionFacts, count_samples, facts_of
from workbench.methods.klcf.prepared import (
    CARD,
    CHECKLISTS,
    TRUTH,
    Source,
    identity_of,
    read_values,
)
from workbench.pipeline import ANSWER_SECTIONS, assemble
from workbench.runs.folder import differences, read_json
from workbench.training.collect import SAMPLES, collect
from workbench.training.stage import order
from workbench.types import Checks, Cost, Feedback, Grade, JsonObject, Question, WorkbenchError
from workbench.util.config import check_values
from workbench.util.failures import TooManyFailures, too_many
from workbench.util.jsonl import encode, replace_rows, write_json

CLAIMED = "support refute not_enough_info other_subject unverified empty conflicting".split()
LISTED = "supported hedged unimportant same_fact contradicting unjudged beyond items".split()
CHUNK = 16  # questions sampled, judged and written at a time


def check_checks(checks: Checks) -> Grade:
    """Return a function that extracts and verifies the claims of responses, without rewards.

    Claims in the thinking are ignored.

    Args:
        checks: the judge's functions, which extract and verify claims.

    Raises:
        WorkbenchError: the checks do not include "fact", which verifies claims.
    """
    return assemble(checks, ["fact"], {}, ANSWER_SECTIONS)


def prepare(
    config: Prepare,
    source: Source,
    questions: Sequence[Question],
    checks: Checks,
    out: Path,
    *,
    seed: int,
) -> JsonObject:
    """Make checklists and labelled claims from samples of the base model, and return the card.

    The card is the content of card.json: the inputs and counts. If an earlier call was
    interrupted, its work is continued. A finished folder is not changed.

    Args:
        source: names the base model and the bench (questions and judge).
        questions: the training questions. If there are more than `config.drawn.questions`, some are
            chosen at random.
        checks: the judge's functions, which extract and verify claims.
        out: the folder to write to.

    Raises:
        WorkbenchError: invalid settings, checks that cannot verify facts, or a folder that was
            prepared with other settings.
        TooManyFailures: the judge failed too often. The same call continues the work.
    """
    check_values(config)
    grade, identity = check_checks(checks), identity_of(config, source, seed)
    if (card := read_json(out / CARD)) is not None:
        stored = {name: read_values(card.get(name)) for name in identity}
        if other := differences(stored, identity):
            raise WorkbenchError(
                f"'{out}' was prepared with other settings ({'; '.join(other)}): choose another"
                " folder"
            )
        return card
    count = min(config.drawn.questions or len(questions), len(questions))
    # sorted, so that the files have the questions in the bench's order
    chosen = [questions[number] for number in sorted(order(len(questions), count, seed))]
    sampling = config.drawn.sampling
    samples = collect(
        source.base,
        [replace(question, system=config.told) for question in chosen],
        grade,
        out / SAMPLES,
        sampling.decoding(seed, config.drawn.samples),
        method=None,
        chunk=CHUNK,
        max_failed=sampling.max_failed,
    )
    return write_prepared(config, source, chosen, samples, checks, out, seed=seed)


def write_prepared(
    config: Prepare,
    source: Source,
    questions: Sequence[Question],
    samples: Sequence[Feedback],
    checks: Checks,
    out: Path,
    *,
    seed: int,
) -> JsonObject:
    """Write checklists, labelled claims and card.json to `out`; return card.json's content.

    Args:
        samples: the base model's answers to `questions`, with claims and verdicts.
        checks: the judge's functions. The check "claim_checklist" compares facts, so that no
            checklist states a fact twice in different words. Without it, facts are not compared.

    Raises:
        TooManyFailures: too many comparisons of facts failed.
    """
    by_question: dict[str, list[Feedback]] = {question.id: [] for question in questions}
    for sample in samples:
        by_question[sample.response.question.id].append(sample)
    found, claims = list[QuestionFacts](), Counter[str]()
    for question in questions:
        facts, kinds = facts_of(by_question[question.id])
        found.append((question, facts))
        claims += kinds
    same = checks.verify.get("claim_checklist")
    lists, listed = checklists(found, same, config.items, config.important)
    comparisons = sum(listed[name] for name in OUTCOMES.values())
    if too_many(listed["unjudged"], comparisons, config.drawn.sampling.max_failed):
        raise TooManyFailures(
            f"{listed['unjudged']} of {comparisons} comparisons with checklists failed: repair the"
            " judge and run the same command again, or raise max_failed"
        )
    rows, truth = truth_rows(found, config.copies, seed)
    items = [
        {"question_id": name, "items": [f.text for f in facts]} for name, facts in lists.items()
    ]
    labelled = [{"question_id": q.id, "claim": claim, "label": label} for q, claim, label in rows]
    replace_rows(out / CHECKLISTS, map(encode, items))
    replace_rows(out / TRUTH, map(encode, labelled))
    broken = sum(sample.error is not None for sample in samples)
    card = {
        **identity_of(config, source, seed),
        "questions": len(questions),
        "failed": broken + claims["unverified"] + listed["unjudged"],
        "samples": count_samples(samples),
        "claims": {name: claims[name] for name in CLAIMED},
        # as in table 6: questions with a checklist, mean number of supported facts per question,
        # mean number of items per checklist
        "checklists": {
            "questions": len(lists),
            "without": len(questions) - len(lists),
            "supported_each": listed["supported"] / len(questions),
            "items_each": listed["items"] / len(lists) if lists else None,
            **{name: listed[name] for name in LISTED},
        },
        "truth": truth,
        "known": known(source.shown, questions, lists),
        "cost": vars(sum((sample.cost for sample in samples), Cost())),
    }
    write_json(out / CARD, card)
    return card
