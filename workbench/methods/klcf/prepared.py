"""Read KLCF's prepared data from a folder, after a check that it fits the bench and base model."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeGuard

from workbench.methods.bench import Bench, check_policy
from workbench.methods.klcf.checklists import Labelled
from workbench.methods.klcf.config import Prepare
from workbench.methods.klcf.facts import LABELS
from workbench.runs.folder import file_digest, policy_hash, read_json
from workbench.runs.store import ROLLOUTS
from workbench.training.collect import SAMPLES
from workbench.types import JsonMapping, JsonObject, Question, WorkbenchError
from workbench.util.config import restore, settings
from workbench.util.jsonl import iter_rows

CHECKLISTS, TRUTH, CARD = "checklists.jsonl", "truth.jsonl", "card.json"
# the files that training reads; the card is written last, so a folder with a card is complete
FILES = (CHECKLISTS, TRUTH, CARD)


@dataclass(frozen=True)
class Source:
    """The base model, and the bench (questions and judge), for which data is prepared.

    Attributes:
        bench: name of the bench.
        hash: digest of the bench's closed world or questions (`Bench.hash`).
        base: folder or hub name of the base model.
        shown: question -> number of the base model's training documents that state its answer; None
            if unknown.
    """

    bench: str
    hash: str
    base: str
    shown: Callable[[Question], int | None] = lambda question: None

    def identity(self) -> JsonObject:
        return {"bench": self.bench, "hash": self.hash, "base": policy_hash(self.base) or self.base}


def source_of(bench: Bench, base: str | None) -> Source:
    """Return the `Source` of a bench and a base model.

    Args:
        base: folder or hub name, or one of `bench.checkpoints`, such as "base". None: the
            pre-trained model of the bench's initial policy if the bench has it, else that policy.

    Raises:
        WorkbenchError: the base model does not exist.
    """
    name = base or bench.pretrained or bench.policy
    path = bench.path(name)
    check_policy(name, path)
    return Source(bench.name, bench.hash, path, bench.shown)


def compared(config: Prepare) -> JsonObject:
    """Return settings as a flat dict for card.json, such as {"items": 10, …}.

    The key of a nested setting is the last part of its name, such as "samples" for `drawn.samples`.
    `max_failed` is left out, because it does not affect the result.
    """
    values = {path.rpartition(".")[2]: value for path, value, _ in settings(config)}
    del values["max_failed"]
    return values


def read_values(stored: object) -> object:
    """Convert a value of card.json, so that it can be compared with a value of `identity_of`.

    Settings, stored by this or an earlier version, are returned in the form of `compared`. A value
    that is not a mapping, such as the seed, is returned unchanged.
    """
    return compared(restore(Prepare(), stored)) if isinstance(stored, Mapping) else stored


def identity_of(config: Prepare, source: Source, seed: int) -> JsonObject:
    """Return the values that determine the result of a preparation: bench, base, seed, settings."""
    return {**source.identity(), "seed": seed, "config": compared(config)}


@dataclass(frozen=True)
class Prepared:
    """Prepared data.

    Attributes:
        questions: the training questions that have a checklist, which is in `Question.checklist`.
        truth: labelled claims, to train the truthfulness model on.
    """

    questions: list[Question]
    truth: list[Labelled]


def read_prepared(folder: Path, source: Source, questions: Sequence[Question]) -> Prepared:
    """Read the prepared data in a folder.

    Args:
        source: the current bench and base model.
        questions: the training questions.

    Raises:
        WorkbenchError: the folder is unfinished or damaged, was prepared for another bench or base
            model, or has a row for a question that is not in `questions`.
    """
    card = read_json(folder / CARD)
    if card is None:
        raise WorkbenchError(
            f"'{folder}' has no finished preparation: make one with `workbench klcf prepare --out"
            f" {folder}`"
        )
    for name, value in source.identity().items():
        if card.get(name) != value:
            raise WorkbenchError(
                f"'{folder}' was prepared for another bench or base model ({name} is"
                f" {card.get(name)}, not {value}): name another folder, or prepare one with"
                " `workbench klcf prepare`"
            )
    # other questions might be held out, and training must not learn their facts
    by_id = {question.id: question for question in questions}

    def question_of(row: JsonMapping) -> Question:
        question_id = row.get("question_id")
        if not isinstance(question_id, str) or question_id not in by_id:
            raise WorkbenchError(
                f"'{folder}' has a row of question '{question_id}', which is not a training"
                f" question: remove its rows from {CHECKLISTS} and {TRUTH}"
            )
        return by_id[question_id]

    listed: list[Question] = []
    for row in iter_rows(folder / CHECKLISTS):
        question, items = question_of(row), row.get("items")
        if not isinstance(items, list) or not items or not all(map(_is_text, items)):
            raise WorkbenchError(
                f"the checklist of question '{question.id}' in '{folder}' has no items, or an item"
                " that is not a text: correct this row of checklists.jsonl"
            )
        listed.append(replace(question, checklist=tuple(items)))
    truth: list[Labelled] = []
    for row in iter_rows(folder / TRUTH):
        question, claim, label = question_of(row), row.get("claim"), row.get("label")
        if not _is_text(claim) or label not in LABELS:
            problem = f"label {label!r} must be one of {', '.join(LABELS)}"
            if not _is_text(claim):
                problem = f"claim {claim!r} must be a text that is not empty"
            raise WorkbenchError(f"'{folder / TRUTH}', question '{question.id}': {problem}")
        truth.append(Labelled(question, claim, label))
    return Prepared(listed, truth)


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip())


def digest(folder: Path) -> str | None:
    """Return a digest of checklists.jsonl, truth.jsonl and card.json; None if a file is missing."""
    if not all((folder / name).is_file() for name in FILES):
        return None
    digests = "".join(file_digest(folder / name) for name in FILES)
    return hashlib.sha256(digests.encode()).hexdigest()[:16]


def samples_digest(folder: Path) -> str | None:
    """Return a digest of the samples in a prepared folder; None if they are missing."""
    file = folder / SAMPLES / ROLLOUTS
    return file_digest(file)[:16] if file.is_file() else None
