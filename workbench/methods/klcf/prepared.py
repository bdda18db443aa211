"""Read a folder of prepared KLCF data, and identify the model and bench it was made with."""

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
# What training reads. The card is written last: a folder with a card is complete.
FILES = (CHECKLISTS, TRUTH, CARD)


@dataclass(frozen=True)
class Source:
    """The bench and the base model that data is prepared with.

    Attributes:
        hash: fingerprint of the bench.
        base: folder or hub name of the base model.
        shown: question -> how often the base's training documents state its facts, if known.
    """

    bench: str
    hash: str
    base: str
    shown: Callable[[Question], int | None] = lambda question: None

    def identity(self) -> JsonObject:
        return {"bench": self.bench, "hash": self.hash, "base": policy_hash(self.base) or self.base}


def source_of(bench: Bench, base: str | None) -> Source:
    """Return the bench with its base model, as a `Source`.

    The base model is `base` if it is named. Otherwise it is the bench's checkpoint "base" if the
    initial policy is one of the bench's checkpoints, and the initial policy if not.
    """
    shipped = bench.policy in bench.checkpoints and "base" in bench.checkpoints
    name = base or ("base" if shipped else bench.policy)
    path = bench.path(name)
    check_policy(name, path)
    return Source(bench.name, bench.hash, path, bench.shown)


def compared(config: Prepare) -> JsonObject:
    """Return the settings that determine the result, without nesting, as the card stores them.

    These are all settings except `max_failed`.
    """
    values = {path.rpartition(".")[2]: value for path, value, _ in settings(config)}
    del values["max_failed"]
    return values


def read_values(stored: object) -> object:
    """Return the settings that any version stored in a card, in the form of `compared`."""
    return compared(restore(Prepare(), stored)) if isinstance(stored, Mapping) else stored


def identity_of(config: Prepare, source: Source, seed: int) -> JsonObject:
    """Return everything that determines the result of a preparation."""
    return {**source.identity(), "seed": seed, "config": compared(config)}


@dataclass(frozen=True)
class Prepared:
    """The questions that have a checklist, and the claims to train the truthfulness model on."""

    questions: list[Question]
    truth: list[Labelled]


def read_prepared(folder: Path, source: Source, questions: Sequence[Question]) -> Prepared:
    """Read a prepared folder for the training questions `questions`.

    Raises:
        WorkbenchError: the folder is unfinished or damaged, was prepared with another base or
            bench, or has a question that is not trained on (it may be held out).
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
                f"'{folder}' was prepared for {name} {card.get(name)}, not {value}: name another"
                " folder, or prepare one with `workbench klcf prepare`"
            )
    # a row of any other question might be held out, and training would learn its facts
    by_id = {question.id: question for question in questions}

    def question_of(row: JsonMapping) -> Question:
        question_id = row.get("question_id")
        if not isinstance(question_id, str) or question_id not in by_id:
            raise WorkbenchError(
                f"'{folder}' has a row of question '{question_id}', which is not a training"
                " question: remove the row"
            )
        return by_id[question_id]

    listed: list[Question] = []
    for row in iter_rows(folder / CHECKLISTS):
        question, items = question_of(row), row.get("items")
        if not isinstance(items, list) or not items or not all(map(_is_text, items)):
            raise WorkbenchError(
                f"the checklist of question '{question.id}' in '{folder}' has no items, or one"
                " that is not a text: correct it"
            )
        listed.append(replace(question, checklist=tuple(items)))
    truth: list[Labelled] = []
    for row in iter_rows(folder / TRUTH):
        question, claim, label = question_of(row), row.get("claim"), row.get("label")
        if not _is_text(claim) or label not in LABELS:
            raise WorkbenchError(
                f"'{folder / TRUTH}', question '{question.id}': claim {claim!r} with label"
                f" {label!r}: write a text and one of {', '.join(LABELS)}"
            )
        truth.append(Labelled(question, claim, label))
    return Prepared(listed, truth)


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip())


def digest(folder: Path) -> str | None:
    """Return the digest of what training reads from a prepared folder; None if it is incomplete."""
    if not all((folder / name).is_file() for name in FILES):
        return None
    digests = "".join(file_digest(folder / name) for name in FILES)
    return hashlib.sha256(digests.encode()).hexdigest()[:16]


def samples_digest(folder: Path) -> str | None:
    """Return the digest of the samples in a prepared folder; None if they are missing."""
    file = folder / SAMPLES / ROLLOUTS
    return file_digest(file)[:16] if file.is_file() else None
