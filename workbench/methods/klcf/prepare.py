"""Prepare KLCF's data once, before training (arXiv 2509.23765, section 2.2): samples of the base
model → claims → verdicts → a checklist for each question, and claims to learn truth from.

The folder holds, in the order of writing:

* `samples/`: the base's samples, claim by claim with verdicts; a killed preparation continues them
* `checklists.jsonl`: `{question_id, items}`
* `truth.jsonl`: `{question_id, claim, label}`
* `card.json`: the inputs, and the counts of every stage
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

from workbench.methods.klcf.checklists import (
    LABELS,
    Fact,
    Labelled,
    checklists,
    facts_of,
    truth_rows,
)
from workbench.metrics.rows import share
from workbench.pipeline import ANSWER_SECTIONS, assemble
from workbench.runs.folder import differences, file_digest, policy_hash, read_json
from workbench.runs.store import ROLLOUTS
from workbench.text import is_abstention
from workbench.training.collect import SAMPLES, collect
from workbench.training.settings import Samples
from workbench.training.stage import order
from workbench.types import Checks, Cost, Feedback, Grade, Question, WorkbenchError
from workbench.util.config import check_values, restore, setting, settings
from workbench.util.failures import TooManyFailures, too_many
from workbench.util.jsonl import encode, iter_rows, replace_rows, write_json

CHECKLISTS, TRUTH, CARD = "checklists.jsonl", "truth.jsonl", "card.json"
FILES = (CHECKLISTS, TRUTH, CARD)  # what training takes; the card last: it says that all is there
CLAIMED = "support refute not_enough_info other_subject unverified empty conflicting".split()
LISTED = "supported hedged unimportant same_fact contradicting unjudged beyond items".split()
CHUNK = 16  # questions that are sampled, judged and written at a time
# The base follows no instructions: it is shown what an answer looks like. Ours; the paper does not
# print its ten.
SHOTS = (
    "Questions and their answers, full of facts and without any opinion.\n\nQuestion: What is the"
    " Moon?\nAnswer: The Moon is the only natural satellite of the Earth. It orbits the Earth at a"
    " mean distance of about 384,400 kilometres. One orbit takes about 27.3 days. The first people"
    " landed on it in 1969.\n\nQuestion: Tell me about Marie Curie.\nAnswer: Marie Curie was a"
    " physicist and chemist. She was born in Warsaw in 1867. She discovered polonium and radium."
    " She won the Nobel Prize in Physics in 1903 and that in Chemistry in 1911.\n\nQuestion: How is"
    " paper made?\nAnswer: Most paper is made from wood. The wood is turned into a pulp of fibres"
    " in water. The pulp is spread on a screen, where the water drains off. The sheet is then"
    " pressed and dried.\n\nAnswer the next question in the same way."
)


@dataclass(frozen=True)
class Prepare:
    """What is sampled of the base model, and what is made of its claims."""

    folder: str | None = setting(
        None, "one that `workbench klcf prepare` has filled; none: the run prepares its own"
    )
    told: str = setting(
        SHOTS,
        "what the base is told before each question: answers to others, as it follows no"
        " instructions",
    )
    items: int = setting(10, "most facts of a checklist", least=1)  # table 6: 10.09 to 11.10
    important: int = setting(
        3, "least informativeness, 1 to 5, of a fact on a checklist", least=1
    )  # (ours)
    copies: int = setting(
        3, "most times that a refuted claim is learnt from", least=1
    )  # appendix B.1
    drawn: Samples = Samples()  # (ours); the paper does not say how many


@dataclass(frozen=True)
class Source:
    """What is prepared: the bench by name and fingerprint, the base's folder or hub name, and
    how often its documents state a question's facts, where that is known."""

    bench: str
    hash: str
    base: str
    shown: Callable[[Question], int | None] = lambda question: None

    def identity(self) -> dict[str, Any]:
        return {"bench": self.bench, "hash": self.hash, "base": policy_hash(self.base) or self.base}


@dataclass(frozen=True)
class Prepared:
    """What training takes: the questions that have a checklist, with it, and the claims to learn
    truth from.
    """

    questions: list[Question]
    truth: list[Labelled]


def check_checks(checks: Checks) -> Grade:
    """Claims of what is said to the reader, with their facts, of these checks.

    Raises:
        WorkbenchError: they cannot tell facts.
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
) -> dict[str, Any]:
    """Prepare training's questions in the folder `out`, continuing what is there, and return the
    card.

    Raises:
        WorkbenchError: settings that cannot work, checks that cannot tell facts, a folder that
        holds something else.
        TooManyFailures: the judge failed too often; the same call goes on.
    """
    check_values(config)
    grade = check_checks(checks)
    if (done := read_json(out / CARD)) is not None:
        wanted = _of(config, source, seed)
        if other := differences({name: read_values(done.get(name)) for name in wanted}, wanted):
            raise WorkbenchError(
                f"'{out}' holds another preparation ({'; '.join(other)}): choose another folder"
            )
        return done
    count = min(config.drawn.questions or len(questions), len(questions))
    asked = [questions[number] for number in sorted(order(len(questions), count, seed))]
    told = [replace(question, system=config.told) for question in asked]
    drawn = config.drawn
    samples = collect(
        source.base,
        told,
        grade,
        out / SAMPLES,
        drawn.sampling.decoding(seed, drawn.samples),
        method=None,
        chunk=CHUNK,
        max_failed=drawn.sampling.max_failed,
    )
    return made(config, source, asked, samples, checks, out, seed=seed)


def made(
    config: Prepare,
    source: Source,
    asked: Sequence[Question],
    samples: Sequence[Feedback],
    checks: Checks,
    out: Path,
    *,
    seed: int,
) -> dict[str, Any]:
    """Write what graded samples to the questions `asked` come to into the folder `out`, and
    return the card.
    """
    by_question: dict[str, list[Feedback]] = {question.id: [] for question in asked}
    for sample in samples:
        by_question[sample.response.question.id].append(sample)
    found, claims = list[tuple[Question, list[Fact]]](), Counter[str]()
    for question in asked:
        facts, kinds = facts_of(by_question[question.id])
        found.append((question, facts))
        claims += kinds
    same = checks.verify.get("claim_checklist")
    lists, listed = checklists(found, same, config.items, config.important)
    outcomes = ("unjudged", "compared", "same_fact", "contradicting")
    comparisons = sum(listed[name] for name in outcomes)
    if too_many(listed["unjudged"], comparisons, config.drawn.sampling.max_failed):
        raise TooManyFailures(
            f"{listed['unjudged']} facts could not be compared with those of their checklists: mend"
            " the judge and run the same command again, or raise max_failed"
        )
    rows, truth = truth_rows(found, config.copies, seed)
    items = [
        {"question_id": name, "items": [fact.text for fact in facts]}
        for name, facts in lists.items()
    ]
    labelled = [
        {"question_id": row.question.id, "claim": row.claim, "label": row.label} for row in rows
    ]
    replace_rows(out / CHECKLISTS, map(encode, items))
    replace_rows(out / TRUTH, map(encode, labelled))
    cost = sum((sample.cost for sample in samples), Cost())
    broken = sum(sample.error is not None for sample in samples)
    card = {
        **_of(config, source, seed),
        "questions": len(asked),
        "failed": broken + claims["unverified"] + listed["unjudged"],
        "samples": _samples(samples),
        "claims": {name: claims[name] for name in CLAIMED},
        # as table 6: questions that have a checklist, supported claims and items on average
        "checklists": {
            "questions": len(lists),
            "without": len(asked) - len(lists),
            "supported_each": listed["supported"] / len(asked),
            "items_each": listed["items"] / len(lists) if lists else None,
            **{name: listed[name] for name in LISTED},
        },
        "truth": truth,
        "known": known(source.shown, asked, lists),
        "cost": vars(cost),
    }
    write_json(out / CARD, card)
    return card


def _of(config: Prepare, source: Source, seed: int) -> dict[str, Any]:
    """What a preparation is of: equal ones end alike."""
    return {**source.identity(), "seed": seed, "config": compared(config)}


def compared(config: Prepare) -> dict[str, Any]:
    """The settings that decide what a preparation holds, side by side, as its card stores them:
    all but `max_failed`."""
    values = {path.rpartition(".")[2]: value for path, value, _ in settings(config)}
    return {name: value for name, value in values.items() if name != "max_failed"}


def read_values(stored: Any) -> Any:
    """`compared` of a config that any version has stored; anything else as it is."""
    return compared(restore(Prepare(), stored)) if isinstance(stored, Mapping) else stored


def _samples(samples: Sequence[Feedback]) -> dict[str, int]:
    """How many there are, and which of them claim nothing: refusals, empty ones, those that
    could not be read.
    """
    silent = [sample for sample in samples if not sample.claims and sample.error is None]
    refused = sum(
        is_abstention(sample.response.text, prefill=sample.response.prefill) for sample in silent
    )
    return {
        "all": len(samples),
        "failed": sum(sample.error is not None for sample in samples),
        "refused": refused,
        "no_claims": len(silent) - refused,
        "cut_off": sum(sample.response.finish != "stop" for sample in samples),
    }


def known(
    shown: Callable[[Question], int | None],
    asked: Sequence[Question],
    lists: Mapping[str, Sequence[Fact]],
) -> dict[str, Any] | None:
    """The checklists against what the base was provably shown: of their facts the share that its
    documents state, and of the facts that the questions rest on and documents state, the share
    that is on one. None where nobody has counted, or where the claims were held against passages
    and not against facts.

    A fact that no document states was guessed, and happens to be true.
    """

    def states(fact: str) -> bool:
        return bool(shown(Question("", "", meta={"fact_ids": (fact,)})))

    listed = [
        (question, name) for question, facts in lists.items() for fact in facts for name in fact.ids
    ]
    if all(shown(question) is None for question in asked) or (lists and not listed):
        return None
    needed = [
        (question.id, name) for question in asked for name in question.meta.get("fact_ids", ())
    ]
    wanted = [one for one in needed if states(one[1])]
    return {
        "precision": share(sum(states(name) for _, name in listed), len(listed)),
        "recall": share(len({*listed} & {*wanted}), len(wanted)),
        "items": len(listed),
        "shown": len(wanted),
    }


def digest(folder: Path) -> str | None:
    """That of what a finished preparation holds for training; None where it is not, or no
    longer, there.
    """
    if not all((folder / name).is_file() for name in FILES):
        return None
    return hashlib.sha256(
        "".join(file_digest(folder / name) for name in FILES).encode()
    ).hexdigest()[:16]


def samples_digest(folder: Path) -> str | None:
    """That of the samples that a preparation was made of; None where they are not, or no longer,
    there.
    """
    file = folder / SAMPLES / ROLLOUTS
    return file_digest(file)[:16] if file.is_file() else None


def read_prepared(folder: Path, source: Source, questions: Sequence[Question]) -> Prepared:
    """What lies in a prepared folder, for the training questions `questions`.

    Raises:
        WorkbenchError: it is not finished, was made of another base or bench, is damaged, or
        speaks of a question that is not
            trained on, as one that is kept for measuring.
    """
    card = read_json(folder / CARD)
    if card is None:
        raise WorkbenchError(
            f"'{folder}' holds no finished preparation: make one with `workbench klcf prepare --out"
            f" {folder}`"
        )
    for name, value in source.identity().items():
        if card.get(name) != value:
            raise WorkbenchError(
                f"'{folder}' was prepared for {name} {card.get(name)}, not {value}: prepare another"
                " folder"
            )
    by_id = {question.id: question for question in questions}

    def question_of(row: Mapping[str, Any]) -> Question:
        name = row.get("question_id")
        if not isinstance(name, str) or name not in by_id:
            raise WorkbenchError(
                f"'{folder}' speaks of question '{name}', which is not one that is trained on:"
                " leave it out"
            )
        return by_id[name]

    listed: list[Question] = []
    for row in iter_rows(folder / CHECKLISTS):
        question, items = question_of(row), row.get("items")
        if not isinstance(items, list) or not items or not all(map(_is_text, items)):
            raise WorkbenchError(
                f"the checklist of question '{question.id}' in '{folder}' has no items, or one"
                " that is no text"
            )
        listed.append(replace(question, checklist=tuple(items)))
    truth: list[Labelled] = []
    for row in iter_rows(folder / TRUTH):
        question, claim, label = question_of(row), row.get("claim"), row.get("label")
        if not _is_text(claim) or label not in LABELS:
            raise WorkbenchError(
                f"a claim of question '{question.id}' in '{folder}' is empty, or its label is"
                f" not one of {LABELS}: correct it"
            )
        truth.append(Labelled(question, claim, label))
    return Prepared(listed, truth)


def _is_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip())
