"""Score segments of responses with a reward model (FoRAG, arXiv 2406.13779, section 5.2).

A reward model is a language model with a scalar head. This module also saves and loads reward
models. All segments of a response share one forward pass; the paper uses a pass for each segment.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.credit.attribute import tokens_between
from workbench.credit.tokens import offsets_from_ids
from workbench.policies.generate import prompt_ids
from workbench.policies.hf import padded
from workbench.policies.load import load_tokenizer
from workbench.policies.weights import ADAPTER, check_finite, loading, verify
from workbench.runs.folder import policy_hash, read_json
from workbench.training.actor import Actor
from workbench.training.loading import Trainee, load_trainee, save_policy
from workbench.training.rows import encode_example
from workbench.types import JsonMapping, JsonObject, Question, WorkbenchError
from workbench.util.jsonl import write_json

if TYPE_CHECKING:
    import torch

MODEL = "model"  # subfolder of a training for its reward model, which is not a policy
BATCH = 32  # rows of a forward pass
# tokens of a forward pass over short rows; with fewer tokens the fixed cost of a pass dominates
TOKENS = 4096
HEAD, CARD = "head.safetensors", "reward_model.json"  # files in the model's folder


class Segment(NamedTuple):
    """A span of characters in a response, with its target: the factuality to learn (0 to 1)."""

    start: int
    end: int
    target: float = 0.0


@dataclass(frozen=True)
class Judged:
    """A response with the segments that a reward model scores.

    A segment is a sentence or the whole text. `token_ids` are the ids that the policy sampled; if
    `token_ids` is empty, `text` is encoded.
    """

    question: Question
    text: str
    segments: tuple[Segment, ...]
    token_ids: tuple[int, ...] = ()


def as_whole(
    question: Question, text: str, target: float = 0.0, specials: Sequence[str] = ()
) -> Judged:
    """Return the answer `text` to a question as a `Judged` with one segment, the whole text.

    The system prompt and the passages of the question are left out.

    Args:
        target: the factuality to learn, from 0 to 1.
        specials: special tokens, such as "<|im_end|>". If `text` contains such a token, it is
            spelled with spaces ("< | i m …"), so that it is not encoded as a special token.
    """
    for token in specials:
        text = text.replace(token, " ".join(token))
    return Judged(
        Question(question.id, question.text, title=question.title),
        text,
        (Segment(0, len(text), target),),
    )


class EncodedRow(NamedTuple):
    """A `Judged` response as token ids.

    Attributes:
        ids: token ids of prompt and response.
        places: for each segment, the positions of its tokens in `ids`.
        targets: the target of each segment.
    """

    ids: list[int]
    places: list[list[int]]
    targets: list[float]


class Scorer:
    """A language model with a scalar head, which predicts the factuality of segments.

    Args:
        actor: the model, with its head.
        level: how the logit of a segment is computed: "sequence" takes the head's output at the
            segment's last token, "token" the mean over its tokens.
        longest: largest number of tokens of prompt and response together. Longer responses are not
            scored.
    """

    def __init__(self, actor: Actor, level: str, longest: int = 2048) -> None:
        self.model, self.tokenizer, self.head = actor.model, actor.tokenizer, actor.head
        self.level, self.longest = level, longest
        # the latest prompt and its ids, because successive rows often have the same prompt
        self._prompt: tuple[list[dict[str, str]], list[int]] = ([], [])

    def encode(self, row: Judged) -> EncodedRow:
        """Return a response as token ids, with the positions of the tokens of each segment.

        A token belongs to a segment if it has at least one of the segment's characters.
        """
        if (messages := row.question.messages()) != self._prompt[0]:
            self._prompt = messages, prompt_ids(self.tokenizer, [row.question])[0]
        prompt = self._prompt[1]
        ids = (
            list(row.token_ids) or encode_example(self.tokenizer, row.question, row.text, prompt)[1]
        )
        text, offsets = offsets_from_ids(self.tokenizer, ids)
        # the chat template may put white space before an answer
        shift = (
            len(text) - len(text.lstrip()) if text != row.text and text.lstrip() == row.text else 0
        )
        places = [
            [
                len(prompt) + token
                for token in tokens_between(offsets, segment.start + shift, segment.end + shift)
            ]
            for segment in row.segments
        ]
        return EncodedRow([*prompt, *ids], places, [segment.target for segment in row.segments])

    def logits(self, rows: Sequence[EncodedRow]) -> "torch.Tensor":
        """Return the logits of all segments of the rows, in order, from one forward pass.

        The result has the shape (S,), for S segments in total.
        """
        import torch

        ids = [row.ids for row in rows]
        ids_BL, mask_BL = padded(ids, self.tokenizer.pad_token_id, self.model.device, left=False)
        # the layers without the output layer: logits of the vocabulary are not needed
        decoder = self.model.get_base_model().base_model
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

    def score(self, rows: Sequence[Judged]) -> list[tuple[float, ...]]:
        """Return the predicted factuality, between 0 and 1, of each segment of each row.

        The result is () for a row of more than `longest` tokens.
        """
        import torch

        encoded = [self.encode(row) for row in rows]
        scores: list[tuple[float, ...]] = [() for _ in rows]
        for numbers in passes([len(row.ids) for row in encoded], self.longest, BATCH):
            with torch.no_grad():
                logits_S = self.logits([encoded[number] for number in numbers])
            values = iter(logits_S.sigmoid().tolist())
            for number in numbers:
                scores[number] = tuple(next(values) for _ in encoded[number].places)
        return scores


def passes(
    lengths: Sequence[int], longest: int, batch: int, tokens: int = TOKENS
) -> list[list[int]]:
    """Divide rows into forward passes, and return the row indices of each pass.

    Rows of similar length share a pass. A pass has up to `batch` rows. If the rows are short, a
    pass has more rows, as many as fit into `tokens` tokens in total, with padding. Rows of more
    than `longest` tokens are left out.

    Args:
        lengths: number of tokens of each row.
    """
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
    scorer: Scorer, trainee: Trainee, card: JsonMapping, policy: str, out: Path
) -> None:
    """Save a reward model to `out/model`, completely or not at all.

    Args:
        scorer: the reward model.
        trainee: the policy with the trained LoRA adapter that the reward model consists of.
        card: settings of the reward model; written to `reward_model.json`, with the path and a hash
            of `policy`.
        policy: the policy that the training started from.
    """
    from safetensors.torch import save_file

    card = {**card, "policy": _path_from(out / MODEL, policy), "policy_hash": policy_hash(policy)}

    def with_head(folder: Path) -> None:
        save_file(scorer.head.state_dict(), folder / HEAD)
        write_json(folder / CARD, card)

    save_policy(trainee, out, name=MODEL, more=with_head)


def _path_from(folder: Path, policy: str) -> str:
    """Return `policy`, or its path relative to `folder` if both are in the same run.

    With a relative path, the folder of the run can be moved.
    """
    path = Path(policy).resolve()
    run = next(
        (parent for parent in folder.resolve().parents if (parent / "config.json").is_file()), None
    )
    inside = run is not None and Path(policy).is_dir() and path.is_relative_to(run)
    return Path(os.path.relpath(path, folder.resolve())).as_posix() if inside else policy


def load_reward_model(folder: Path | str) -> Scorer:
    """Load a reward model from `folder`, which is the folder `out/model` of its training.

    Raises:
        WorkbenchError: there is no reward model in the folder, it is damaged, or the policy that
            its training started from has changed.
    """
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file

    folder = Path(folder)
    card = _card(folder)
    verify(folder)
    in_run = folder / card["policy"]
    policy = str(in_run) if in_run.is_dir() else card["policy"]
    if card["policy_hash"] and policy_hash(policy) not in (None, card["policy_hash"]):
        raise WorkbenchError(
            f"'{policy}' differs from the model that the reward model '{folder}' was trained from:"
            " restore that model, or train the reward model again"
        )
    lora = {name: card[name] for name in ("lora_r", "lora_alpha")}
    trainee = load_trainee(policy, **lora, seed=0, unsloth=False)
    actor = Actor(trainee)
    with loading(str(folder), f"name a reward model that was trained from '{policy}'"):
        result = set_peft_model_state_dict(trainee.model, load_file(folder / ADAPTER))
        if result.unexpected_keys:
            raise WorkbenchError(
                f"the adapter of '{folder}' was trained on another model than '{policy}':"
                " its files are mixed up; copy the whole folder from its run again"
            )
        actor.head.load_state_dict(load_file(folder / HEAD))
    check_finite(str(folder), trainee.model)
    trainee.model.eval()
    if trainee.model.dtype.itemsize >= 4:  # in fewer bits the merged weights would be rounded
        trainee.model.merge_adapter()
    return Scorer(actor, card["level"], card["max_length"])


def longest_input(policy: str, questions: Sequence[Question], max_new_tokens: int) -> int:
    """Return the number of tokens of the longest prompt, with an answer of `max_new_tokens`.

    Args:
        policy: folder or hub name; only its tokenizer is loaded.
    """
    return max(map(len, prompt_ids(load_tokenizer(policy), questions))) + max_new_tokens


def check_room(
    policy: str, questions: Sequence[Question], max_new_tokens: int, models: Mapping[str, Any]
) -> None:
    """Raise a WorkbenchError if a reward model's `max_length` is too small for the responses.

    `max_length` must be at least the longest prompt of the questions plus `max_new_tokens`, in
    tokens.

    Args:
        policy: folder or hub name; only its tokenizer is loaded.
        models: settings of the reward models to train (`RewardModel`) by name, such as
            "klcf.truth_model".
    """
    needed = longest_input(policy, questions, max_new_tokens)
    for name, model in models.items():
        if model.passes.max_length < needed:
            raise WorkbenchError(
                f"{name}.max_length is {model.passes.max_length}, but the longest prompt with an"
                f" answer of {max_new_tokens} tokens has {needed}: set it to {needed}, or lower"
                " max_new_tokens"
            )


def _card(folder: Path) -> JsonObject:
    """Return the settings of a reward model from its `reward_model.json`, after checking them.

    Raises:
        WorkbenchError: the folder has no reward model, or its card is damaged.
    """
    card = read_json(folder / CARD) if folder.is_dir() else None
    if card is None or not all((folder / name).is_file() for name in (HEAD, ADAPTER)):
        raise WorkbenchError(
            f"'{folder}' is not a reward model: name the folder '{MODEL}' in the output of its"
            " training"
        )
    if not (
        all(isinstance(card.get(name), int) for name in ("lora_r", "lora_alpha", "max_length"))
        and card.get("level") in ("sequence", "token")
        and isinstance(card.get("policy"), str)
        and "policy_hash" in card
    ):
        raise WorkbenchError(f"'{folder / CARD}' is damaged: copy the folder from its run again")
    return card
