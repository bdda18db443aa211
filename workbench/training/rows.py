"""What supervised and preference training learn from: examples and pairs, a card of where they
come from, and how they are laid out as token ids, the prompt exactly as generation prompts with
it."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from workbench.credit.tokens import decode, prefill
from workbench.policies.generate import prompt_ids
from workbench.runs.folder import read_json
from workbench.types import Question, WorkbenchError
from workbench.util.jsonl import write_json

Ids = list[int]
SHOWN = 5  # rows that a message names
DATA = "data.json"  # in a training's folder: what it is trained on


@dataclass(frozen=True)
class Example:
    """A question and a text to learn as its answer, with a weight; below 0 it is a text to
    unlearn (unlikelihood).

    `source` names the response that the text is from; "" for one that was written.
    """

    question: Question
    text: str
    weight: float = 1.0
    source: str = ""


@dataclass(frozen=True)
class Pair:
    """A question with two answers, of which the first is preferred."""

    question: Question
    chosen: str
    rejected: str


@dataclass(frozen=True)
class Card:
    """How rows came of graded responses: the rule, what it was given, rows by kind, and what it
    dropped and why.

    A question is counted as dropped where no row is made of it, a sample where it is in no row;
    so the counts of either add up.
    """

    rule: str
    questions: int
    samples: int
    rows: Mapping[str, int] = field(default_factory=dict)
    dropped_questions: Mapping[str, int] = field(default_factory=dict)
    dropped_samples: Mapping[str, int] = field(default_factory=dict)

    def to_row(self) -> dict[str, Any]:
        """As one JSON object."""
        return asdict(self)


Row = TypeVar("Row", Example, Pair)


class Asked(Protocol):
    """A row that answers a question."""

    @property
    def question(self) -> Question: ...


def encode_example(
    tokenizer: Any, question: Question, text: str, prompt: Ids | None = None
) -> tuple[Ids, Ids]:
    """The ids of the prompt, as `generate` prompts, and those of `text` as the policy would
    answer with it, its end included; `prompt` are those of the prompt where they are known.

    White space that the chat template puts before an answer is put there; beyond that the text
    is taken as it stands, also where a template would change it (some drop the thinking). What
    the prompt has opened already, "<think>", is not said twice.
    """
    prompt = prompt_ids(tokenizer, [question])[0] if prompt is None else prompt
    opened, end = prefill(tokenizer, prompt), tokenizer.eos_token_id
    for start in {opened: None, opened.strip(): None}:
        if start and text.startswith(start):
            return prompt, [*_encoded(tokenizer, text.removeprefix(start)), end]
    conversation = [*question.messages(), {"role": "assistant", "content": text}]
    whole = list(
        tokenizer.apply_chat_template(conversation, tokenize=True, return_dict=True)["input_ids"]
    )
    said = whole[len(prompt) :]
    said = said[: said.index(end)] if end in said else said
    if whole[: len(prompt)] != prompt or text not in (
        (written := decode(tokenizer, said)),
        written.lstrip(),
    ):
        said = _encoded(tokenizer, text)
    return prompt, [*said, end]


def _encoded(tokenizer: Any, text: str) -> Ids:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def example_ids(tokenizer: Any, row: Example) -> dict[str, Any]:
    """`input_ids`, `labels` (-100 where no loss is taken) and `weight` of a row.

    A text to unlearn is wrong for what it says, not for that it ends: its end takes no loss
    *(ours)*.
    """
    prompt, said = encode_example(tokenizer, row.question, row.text)
    labels = [-100] * len(prompt) + said
    if row.weight < 0:
        labels[-1] = -100
    return {"input_ids": prompt + said, "labels": labels, "weight": row.weight}


def pair_ids(tokenizer: Any, row: Pair) -> dict[str, Any]:
    """`prompt_ids`, `chosen_ids` and `rejected_ids` of a row, as TRL's DPO names them."""
    prompt, chosen = encode_example(tokenizer, row.question, row.chosen)
    _, rejected = encode_example(tokenizer, row.question, row.rejected)
    return {"prompt_ids": prompt, "chosen_ids": chosen, "rejected_ids": rejected}


def check_rows(rows: Sequence[Example | Pair]) -> None:
    """Raise a WorkbenchError for no rows, and for one that cannot be learnt from."""
    if not rows:
        raise WorkbenchError(
            "no rows to train on: give some, or see in the data card why all were dropped"
        )
    for row in rows:
        fault = ""
        texts = [row.text] if isinstance(row, Example) else [row.chosen, row.rejected]
        if not all(text.strip() for text in texts):
            fault = "has an empty text"
        elif isinstance(row, Pair) and row.chosen == row.rejected:
            fault = "has one text as chosen and rejected"
        elif isinstance(row, Example) and (not math.isfinite(row.weight) or row.weight == 0):
            fault = f"has weight {row.weight}"
        if fault:
            raise WorkbenchError(f"the row of question '{row.question.id}' {fault}: leave it out")


def within(rows: Sequence[Asked], lengths: Sequence[int], max_length: int) -> list[int]:
    """Numbers of the rows of at most `max_length` tokens; what is longer is named on stderr,
    never cut.

    Raises:
        WorkbenchError: none is.
    """
    long = [number for number, length in enumerate(lengths) if length > max_length]
    if long:
        named = ", ".join(
            f"'{rows[number].question.id}' ({lengths[number]})" for number in long[:SHOWN]
        )
        more = f" and {len(long) - SHOWN} more" if len(long) > SHOWN else ""
        message = (
            f"{len(long)} of {len(rows)} rows are longer than max_length {max_length}:"
            f" {named}{more}"
        )
        if len(long) == len(rows):
            raise WorkbenchError(f"{message}; raise max_length")
        print(f"left out: {message}", file=sys.stderr)
    return [number for number, length in enumerate(lengths) if length <= max_length]


def keep_data(out: Path, given: int, used: Sequence[Mapping[str, Any]], steps: int) -> None:
    """Write down what the training in `out` learns from, or see that it is what it began with.

    Raises:
        WorkbenchError: it began with other rows.
    """
    digest = hashlib.sha256(
        "\n".join(json.dumps(row, sort_keys=True) for row in used).encode()
    ).hexdigest()
    data = {
        "rows": given,
        "too_long": given - len(used),
        "trained_on": len(used),
        "steps": steps,
        "digest": digest,
    }
    keep_identity(out, DATA, data, "a training on other rows or steps")


def keep_identity(
    out: Path, name: str, identity: Mapping[str, Any], what: str, began: bool = False
) -> None:
    """Write down in the folder `out` what is done there, or see that it is the same.

    Raises:
        WorkbenchError: the file `name` says otherwise, or is missing where the work has begun.
    """
    wanted, stored = json.loads(json.dumps(identity)), read_json(out / name)
    if stored != wanted and (began or stored is not None):
        raise WorkbenchError(f"'{out}' holds {what}: choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / name, wanted)
