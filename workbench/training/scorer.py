"""A model with a scalar head that reads segments (FoRAG, arXiv 2406.13779, section 5.2): what it
reads, and its files.

All segments of a response are read in one forward pass; the paper's way, a pass for each, makes
its subclaim version two thirds slower.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.credit.attribute import tokens_between
from workbench.credit.tokens import offsets_from_ids
from workbench.policies.generate import prompt_ids
from workbench.policies.load import load_tokenizer
from workbench.policies.weights import ADAPTER, check_finite, loading, verify
from workbench.runs.folder import policy_hash, read_json
from workbench.training.actor import Actor
from workbench.training.loading import Trainee, load_trainee, save_policy
from workbench.training.rows import encode_example
from workbench.types import Question, WorkbenchError
from workbench.util.jsonl import write_json

if TYPE_CHECKING:
    import torch

MODEL = "model"  # the folder of a reward model, in that of its training: it is no policy
# of a pass over short rows: small passes spend their time on calls, not on arithmetic
TOKENS = 4096
HEAD, CARD = "head.safetensors", "reward_model.json"  # in the model's folder


class Segment(NamedTuple):
    """Characters of a response from `start` to before `end`, and the factuality that they are to
    get, from 0 to 1.
    """

    start: int
    end: int
    target: float = 0.0


@dataclass(frozen=True)
class Judged:
    """A response to a question with the segments that are scored: its sentences, or all of it.

    `token_ids` are those that were sampled; without them the text is encoded.
    """

    question: Question
    text: str
    segments: tuple[Segment, ...]
    token_ids: tuple[int, ...] = ()


def as_whole(
    question: Question, text: str, target: float = 0.0, specials: Sequence[str] = ()
) -> Judged:
    """A text as the whole answer to its question, all of it one segment, without what a policy
    is told and shown before it.

    A token that ends a turn, written out in the text, is taken apart: it is text, and nobody
    speaks after it.
    """
    for token in specials:
        text = text.replace(token, " ".join(token))
    return Judged(
        Question(question.id, question.text, title=question.title),
        text,
        (Segment(0, len(text), target),),
    )


class Read(NamedTuple):
    """A row as ids: those of prompt and response, and of each segment its tokens' places among
    them, and its target.
    """

    ids: list[int]
    places: list[list[int]]
    targets: list[float]


class Scorer:
    """A model with a scalar head: responses with segments -> a factuality for each segment.

    `longest` is how many tokens of prompt and response it was trained to read, and reads.
    """

    def __init__(self, actor: Actor, level: str, longest: int = 2048) -> None:
        self.model, self.tokenizer, self.head = actor.model, actor.tokenizer, actor.head
        self.level, self.longest = level, longest
        # the last question that was read, and its ids
        self._asked: tuple[list[dict[str, str]], list[int]] = ([], [])

    def read(self, row: Judged) -> Read:
        """The row as ids. A segment's tokens are those that hold a character of it; its last is
        the one that is paid for it.
        """
        prompt = self._prompt(row.question)
        said = (
            list(row.token_ids) or encode_example(self.tokenizer, row.question, row.text, prompt)[1]
        )
        text, offsets = offsets_from_ids(self.tokenizer, said)
        skipped = (
            len(text) - len(text.lstrip()) if text != row.text and text.lstrip() == row.text else 0
        )
        spans = [(segment.start + skipped, segment.end + skipped) for segment in row.segments]
        places = [
            [len(prompt) + token for token in tokens_between(offsets, *span)] for span in spans
        ]
        return Read([*prompt, *said], places, [segment.target for segment in row.segments])

    def _prompt(self, question: Question) -> list[int]:
        """What a question is prompted with; the claims of a response come one after another, and
        ask one question.
        """
        if (messages := question.messages()) != self._asked[0]:
            self._asked = messages, prompt_ids(self.tokenizer, [question])[0]
        return self._asked[1]

    def logits(self, rows: Sequence[Read]) -> torch.Tensor:
        """The segments' logits, one after another (S,), from one forward pass."""
        import torch

        length, pad = max(len(row.ids) for row in rows), self.tokenizer.pad_token_id
        gaps = [length - len(row.ids) for row in rows]
        ids, mask = (
            [row.ids + [pad] * gap for row, gap in zip(rows, gaps, strict=True)],
            [[1] * (length - gap) + [0] * gap for gap in gaps],
        )
        ids_BL, mask_BL = (torch.tensor(part, device=self.model.device) for part in (ids, mask))
        decoder = self.model.get_base_model().model
        output = decoder(input_ids=ids_BL, attention_mask=mask_BL, use_cache=False)
        values_BL = self.head(output.last_hidden_state.float()).squeeze(-1)
        pick = slice(-1, None) if self.level == "sequence" else slice(None)
        return torch.stack(
            [
                values_BL[number, places[pick]].mean()
                for number, row in enumerate(rows)
                for places in row.places
            ]
        )

    def score(self, rows: Sequence[Judged], batch: int = 32) -> list[tuple[float, ...]]:
        """The factuality of each row's segments, between 0 and 1; () for a row that is longer
        than `longest`.

        A pass reads `batch` rows, and more where they are short."""
        import torch

        reads = [self.read(row) for row in rows]
        scores: list[tuple[float, ...]] = [() for _ in rows]
        for numbers in passes([len(read.ids) for read in reads], self.longest, batch):
            with torch.no_grad():
                logits_S = self.logits([reads[number] for number in numbers])
            values = iter(logits_S.sigmoid().tolist())
            for number in numbers:
                scores[number] = tuple(next(values) for _ in reads[number].places)
        return scores


def passes(
    lengths: Sequence[int], longest: int, batch: int, tokens: int = TOKENS
) -> list[list[int]]:
    """The numbers of the rows that each forward pass reads: rows of like length, at least
    `batch` of them while there are any, and as many as make so many `tokens` with their padding.
    What is longer than `longest` is in none."""
    short = sorted(
        (number for number, length in enumerate(lengths) if length <= longest),
        key=lambda number: -lengths[number],
    )
    parts: list[list[int]] = []
    start = 0
    while start < len(short):
        size = max(batch, tokens // max(1, lengths[short[start]]))
        parts.append(short[start : start + size])
        start += size
    return parts


def save_reward_model(
    scorer: Scorer, trainee: Trainee, card: Mapping[str, Any], policy: str, out: Path
) -> None:
    """Put a model, with a card that names the policy that it was trained from, into `out/model`,
    whole or not at all.
    """
    from safetensors.torch import save_file

    card = {**card, "policy": _named_from(out / MODEL, policy), "policy_hash": policy_hash(policy)}

    def with_head(folder: Path) -> None:
        save_file(scorer.head.state_dict(), folder / HEAD)
        write_json(folder / CARD, card)

    save_policy(trainee, out, name=MODEL, more=with_head)


def _named_from(folder: Path, policy: str) -> str:
    """A policy in the run that holds the folder by its way from there, so that the run can be
    moved; any other as it is.
    """
    path = Path(policy).resolve()
    run = next(
        (parent for parent in folder.resolve().parents if (parent / "config.json").is_file()), None
    )
    inside = run is not None and Path(policy).is_dir() and path.is_relative_to(run)
    return Path(os.path.relpath(path, folder.resolve())).as_posix() if inside else policy


def load_reward_model(folder: Path | str, policy: str | None = None) -> Scorer:
    """The reward model that a training left in `folder` (its `out/model`), on the policy that it
    was trained from, which it names itself.

    Raises:
        WorkbenchError: it is none, is damaged, or was trained from another policy.
    """
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file

    folder = Path(folder)
    card = _card(folder)
    verify(folder)
    own = folder / card["policy"]
    policy = policy or (str(own) if own.is_dir() else card["policy"])
    if card["policy_hash"] and policy_hash(policy) not in (None, card["policy_hash"]):
        raise WorkbenchError(
            f"'{policy}' is not what the reward model '{folder}' was trained from: name that policy"
        )
    trainee = load_trainee(
        policy,
        lora_r=card["lora_r"],
        lora_alpha=card["lora_alpha"],
        seed=0,
        unsloth=False,
    )
    actor = Actor(trainee)
    with loading(str(folder), "name a reward model and the policy that it was trained from"):
        result = set_peft_model_state_dict(trainee.model, load_file(folder / ADAPTER))
        if result.unexpected_keys:
            raise WorkbenchError(
                f"the adapter of '{folder}' is not of '{policy}': name the right policy"
            )
        actor.head.load_state_dict(load_file(folder / HEAD))
    check_finite(str(folder), trainee.model)
    trainee.model.eval()
    if trainee.model.dtype.itemsize >= 4:  # in fewer bits the sum would be rounded
        trainee.model.merge_adapter()
    return Scorer(actor, card["level"], card["max_length"])


def check_room(
    policy: str, questions: Sequence[Question], most: int, models: Mapping[str, Any]
) -> None:
    """Raise a WorkbenchError where a reward model to come, by its setting, could not read the
    longest prompt with `most` tokens of an answer."""
    prompts = prompt_ids(load_tokenizer(policy), questions)
    needed = max(map(len, prompts)) + most
    for name, model in models.items():
        if model.passes.max_length < needed:
            raise WorkbenchError(
                f"{name}.max_length is {model.passes.max_length}, and the longest prompt with an"
                f" answer of up to {most} tokens has {needed}: set it to that, or max_new_tokens"
                " lower"
            )


def _card(folder: Path) -> dict[str, Any]:
    """What a reward model says of itself.

    Raises:
        WorkbenchError: there is none, or it says something else.
    """
    card = read_json(folder / CARD) if folder.is_dir() else None
    if card is None or not all((folder / name).is_file() for name in (HEAD, ADAPTER)):
        raise WorkbenchError(
            f"'{folder}' is no reward model: name the folder '{MODEL}' of its training"
        )
    if not (
        all(isinstance(card.get(name), int) for name in ("lora_r", "lora_alpha", "max_length"))
        and card.get("level") in ("sequence", "token")
        and isinstance(card.get("policy"), str)
        and "policy_hash" in card
    ):
        raise WorkbenchError(
            f"'{folder / CARD}' is not as a training wrote it: take the folder from its run again"
        )
    return card
