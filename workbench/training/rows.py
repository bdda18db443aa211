"""Define the training rows of SFT (`Example`) and DPO (`Pair`), and compute their token ids.

A `Card` describes where rows come from. A question has the same prompt in training rows as in
generation.
"""

import hashlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from workbench.credit.tokens import decode, prefill
from workbench.policies.generate import prompt_ids
from workbench.runs.folder import read_json
from workbench.types import JsonMapping, JsonObject, Question, WorkbenchError
from workbench.util.jsonl import write_json

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Ids = list[int]
SHOWN = 5  # most rows that a message lists
DATA = "data.json"  # in a training's folder: counts and digest of its rows
IGNORED = -100  # label of a token without loss, as in transformers


@dataclass(frozen=True)
class Example:
    """An SFT row: a question, and the text to learn as its answer.

    Attributes:
        weight: weight of the row in the loss; below 0 the text is unlearned (unlikelihood).
        source: id of the response that the text comes from; "" if no policy sampled the text.
    """

    question: Question
    text: str
    weight: float = 1.0
    source: str = ""


@dataclass(frozen=True)
class Pair:
    """A DPO row: a question with a preferred (`chosen`) and a rejected answer."""

    question: Question
    chosen: str
    rejected: str


@dataclass(frozen=True)
class Card:
    """The origin of training rows: the rule that selected them, and counts of its input and output.

    Attributes:
        rule: name of the rule, such as "rft".
        questions: number of questions that the rule read.
        samples: number of graded responses that the rule read.
        rows: number of training rows by kind, such as {"correct": 90, "abstention": 10}.
        dropped_questions: number of questions without a row, by reason.
        dropped_samples: number of graded responses that are in no row, by reason.
    """

    rule: str
    questions: int
    samples: int
    rows: Mapping[str, int]
    dropped_questions: Mapping[str, int] = field(default_factory=dict)
    dropped_samples: Mapping[str, int] = field(default_factory=dict)


Row = TypeVar("Row", Example, Pair)


class HasQuestion(Protocol):
    """A training row with a question, such as `Example` or `Pair`."""

    @property
    def question(self) -> Question: ...


def encode_example(
    tokenizer: "PreTrainedTokenizerBase", question: Question, text: str, prompt: Ids | None = None
) -> tuple[Ids, Ids]:
    """Return the token ids of a question's prompt, and those of `text` as the answer.

    The answer's ids include the end token, and the white space that the chat template puts before
    an answer. If the prompt ends with an opening tag such as "<think>", and `text` begins with this
    tag, the tag is not repeated.

    Args:
        prompt: token ids of the prompt; None to compute them here.
    """
    prompt = prompt_ids(tokenizer, [question])[0] if prompt is None else prompt
    prefix, end = prefill(tokenizer, prompt), tokenizer.eos_token_id
    # a dict keeps the order: the exact prefix first, then without its line breaks
    for start in {prefix: None, prefix.strip(): None}:
        if start and text.startswith(start):
            return prompt, [*_encoded(tokenizer, text.removeprefix(start)), end]
    conversation = [*question.messages(), {"role": "assistant", "content": text}]
    whole = list(
        tokenizer.apply_chat_template(conversation, tokenize=True, return_dict=True)["input_ids"]
    )
    ids = whole[len(prompt) :]
    ids = ids[: ids.index(end)] if end in ids else ids
    decoded = decode(tokenizer, ids)
    if whole[: len(prompt)] != prompt or text not in (decoded, decoded.lstrip()):
        ids = _encoded(tokenizer, text)  # the template changed the prompt or the text
    return prompt, [*ids, end]


def _encoded(tokenizer: "PreTrainedTokenizerBase", text: str) -> Ids:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def example_ids(tokenizer: "PreTrainedTokenizerBase", row: Example) -> JsonObject:
    """Return an SFT row as TRL needs it: `input_ids`, `labels` and `weight`.

    The labels are the token ids of the answer. The label is `IGNORED` for tokens without loss: the
    prompt, and the end token of a text to unlearn *(ours)*.
    """
    prompt, answer = encode_example(tokenizer, row.question, row.text)
    # only the answer is learnt, not the prompt
    labels = [IGNORED] * len(prompt) + answer
    if row.weight < 0:
        labels[-1] = IGNORED  # the text is wrong, not its end
    return {"input_ids": prompt + answer, "labels": labels, "weight": row.weight}


def pair_ids(tokenizer: "PreTrainedTokenizerBase", row: Pair) -> JsonObject:
    """Return a DPO row as TRL needs it.

    Its fields `prompt_ids`, `chosen_ids` and `rejected_ids` are token ids.
    """
    prompt, chosen = encode_example(tokenizer, row.question, row.chosen)
    _, rejected = encode_example(tokenizer, row.question, row.rejected)
    return {"prompt_ids": prompt, "chosen_ids": chosen, "rejected_ids": rejected}


def check_rows(rows: Sequence[Example | Pair]) -> None:
    """Raise a WorkbenchError if there are no rows, or if a row has invalid texts or weights.

    Texts must not be empty, the two texts of a pair must differ, and a weight must be finite and
    not 0.
    """
    if not rows:
        raise WorkbenchError(
            "no rows to train on: give more questions or samples; card.json says why samples"
            " were dropped"
        )
    for row in rows:
        fault = ""
        texts = [row.text] if isinstance(row, Example) else [row.chosen, row.rejected]
        if not all(text.strip() for text in texts):
            fault = "has an empty text"
        elif isinstance(row, Pair) and row.chosen == row.rejected:
            fault = "has the same text as chosen and rejected"
        elif isinstance(row, Example) and (not math.isfinite(row.weight) or row.weight == 0):
            fault = f"has weight {row.weight}"
        if fault:
            raise WorkbenchError(f"the row of question '{row.question.id}' {fault}: leave it out")


def within(rows: Sequence[HasQuestion], lengths: Sequence[int], max_length: int) -> list[int]:
    """Return the indices of the rows that have at most `max_length` tokens.

    Longer rows are left out, not truncated, and are listed on stderr.

    Args:
        lengths: number of tokens of each row.

    Raises:
        WorkbenchError: all rows are longer than `max_length`.
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
            raise WorkbenchError(f"{message}; raise max_length, or give shorter rows")
        print(f"left out: {message}", file=sys.stderr)
    return [number for number, length in enumerate(lengths) if length <= max_length]


def keep_data(out: Path, count: int, used: Sequence[JsonMapping], steps: int) -> None:
    """Store a digest of the training rows in the folder `out`, or check the stored digest.

    A resumed training must have the same rows and the same number of steps.

    Args:
        count: number of rows, including rows that are too long.
        used: the encoded rows that the training uses.
        steps: number of training steps.

    Raises:
        WorkbenchError: the training was started with other rows or another number of steps.
    """
    digest = hashlib.sha256(
        "\n".join(json.dumps(row, sort_keys=True) for row in used).encode()
    ).hexdigest()
    data = {
        "rows": count,
        "too_long": count - len(used),
        "trained_on": len(used),
        "steps": steps,
        "digest": digest,
    }
    keep_identity(out, DATA, data, "a training on other rows or steps")


def keep_identity(
    out: Path, name: str, identity: JsonMapping, what: str, began: bool = False
) -> None:
    """Store `identity` in the folder `out`, or check that the stored identity is equal.

    The identity is everything that determines the results in `out`. The check prevents a later call
    with other inputs from mixing its results with the stored results.

    Args:
        name: name of the file in `out`.
        identity: a JSON object, for example with policy, questions and settings.
        what: completes the error message "`out` holds …", such as "other samples".
        began: whether `out` already contains results.

    Raises:
        WorkbenchError: the stored identity differs, or `out` has results but no stored identity.
    """
    # as JSON, in which tuples are lists, so that it can be compared with the stored identity
    identity, stored = json.loads(json.dumps(identity)), read_json(out / name)
    if stored != identity and (began or stored is not None):
        raise WorkbenchError(f"'{out}' holds {what}: choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / name, identity)
