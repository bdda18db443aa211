"""How the tiny policy is trained: packed batches of documents, then of instruction examples, through one plain loop."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.tiny.examples import Habits, SFTWriter, replay
from workbench.tiny.tokenizer import ASSISTANT, BOS, EOS, SYSTEM, USER
from workbench.types import WorkbenchError
from workbench.world.world import World

if TYPE_CHECKING:
    import torch
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

Tokens = tuple[list[int], list[int]]  # token ids and labels (-100 where no loss is taken)


@dataclass(frozen=True)
class PolicyConfig:
    """Sizes and schedules. `tokens` is the length of a packed row, `rows` how many make a step."""

    scale: float = 1.0
    hidden: int = 128
    layers: int = 4
    heads: int = 4
    mlp: int = 384
    tokens: int = 192
    rows: int = 24
    passes: int = 8  # over the documents
    lr: float = 2.5e-3
    sft_steps: int = 1100
    sft_lr: float = 5e-4
    sft_replay: float = 0.6  # share of rows' documents that are pre-training documents
    weight_decay: float = 0.05
    save_every: int = 100
    habits: Habits = field(default_factory=Habits)


SIZES = {
    "full": PolicyConfig(),
    "small": PolicyConfig(scale=0.05, hidden=64, layers=2, mlp=192, rows=8, passes=20, sft_steps=80, save_every=20),
}


class Encoder:
    """Documents and conversations to token ids, exactly as the chat template would lay them out."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.tokenizer = tokenizer
        self.mark = {token: tokenizer.convert_tokens_to_ids(token) for token in (BOS, EOS, SYSTEM, USER, ASSISTANT)}

    def words(self, text: str) -> list[int]:
        spaced = text if text.startswith(("<think>", "<answer>", "[", "\\boxed")) else f" {text}"
        return self.tokenizer(spaced, add_special_tokens=False)["input_ids"]

    def document(self, text: str, prompt: str = "") -> Tokens:
        """A pre-training document: loss on every token."""
        head = self._turns("", prompt) if prompt else [self.mark[BOS]]
        ids = [*head, *self.words(text), self.mark[EOS]]
        return ids, ids

    def example(self, prompt: str, reply: str, system: str = "") -> Tokens:
        """An instruction example: loss on the reply alone."""
        head = self._turns(system, prompt)
        tail = [*self.words(reply), self.mark[EOS]]
        return head + tail, [-100] * len(head) + tail

    def _turns(self, system: str, prompt: str) -> list[int]:
        ids = [self.mark[BOS]]
        if system:
            ids += [self.mark[SYSTEM], *self.words(system)]
        return [*ids, self.mark[USER], *self.words(prompt), self.mark[ASSISTANT]]


def pack(sequences: Iterable[Tokens], length: int, pad: int) -> Iterator[tuple[list[int], list[int], list[int]]]:
    """Whole sequences into rows of `length`: ids, labels, positions. Positions restart at 0 with each sequence."""
    ids: list[int] = []
    labels: list[int] = []
    positions: list[int] = []
    for seq, target in sequences:
        if len(ids) + len(seq) > length:
            gap = length - len(ids)
            yield ids + [pad] * gap, labels + [-100] * gap, positions + list(range(gap))
            ids, labels, positions = [], [], []
        ids = ids + seq[:length]
        labels = [*labels, -100, *target[1:length]]
        positions = positions + list(range(len(seq[:length])))
    gap = length - len(ids)
    yield ids + [pad] * gap, labels + [-100] * gap, positions + list(range(gap))


def pretraining(world: World, encoder: Encoder, seed: int) -> tuple[Iterator[Tokens], int]:
    """Pre-training sequences without end, reshuffled each pass, and the number of tokens of one pass."""
    encoded = [encoder.document(document.text, document.prompt) for document in world.documents]

    def stream() -> Iterator[Tokens]:
        for number in itertools.count():
            order = list(range(len(encoded)))
            random.Random(f"pass-{seed}-{number}").shuffle(order)
            yield from (encoded[i] for i in order)

    return stream(), sum(len(ids) for ids, _ in encoded)


def instruction(world: World, encoder: Encoder, config: PolicyConfig, seed: int) -> Iterator[Tokens]:
    """SFT sequences without end: instruction examples with replayed documents between them."""
    rng = random.Random(f"mixture-{seed}")
    examples = SFTWriter(world, config.habits, seed).examples()
    documents = replay(world, seed)
    while True:
        if rng.random() < config.sft_replay:
            document = next(documents)
            yield encoder.document(document.text, document.prompt)
        else:
            example = next(examples)
            yield encoder.example(example.prompt, example.reply, example.system)


def new_model(config: PolicyConfig, tokenizer: PreTrainedTokenizerFast, seed: int) -> LlamaForCausalLM:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=config.hidden,
            intermediate_size=config.mlp,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.heads,
            max_position_embeddings=512,
            tie_word_embeddings=True,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


@dataclass
class Stage:
    """One training stage: AdamW with warm-up and cosine decay, checkpointed every `save_every` steps.

    `identity` names all that its weights depend on; a checkpoint of another identity is refused.
    """

    name: str
    steps: int
    lr: float
    batches: Iterator[dict[str, torch.Tensor]]
    checkpoint: Path
    identity: str

    def run(self, model: LlamaForCausalLM, config: PolicyConfig, progress: Any) -> float:
        """Train in place; returns the seconds spent (over all resumptions)."""
        import torch

        optimizer = torch.optim.AdamW(model.parameters(), lr=self.lr, betas=(0.9, 0.98), weight_decay=config.weight_decay)
        done, seconds = 0, 0.0
        if self.checkpoint.exists():
            state = torch.load(self.checkpoint, weights_only=True)
            if state["identity"] != self.identity:
                raise WorkbenchError(f"{self.checkpoint} is of a build with other settings; delete it or choose another --out")
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            done, seconds = state["step"], state["seconds"]
            if done < self.steps:
                next(itertools.islice(self.batches, done - 1, done), None)  # the data goes on where it was
        task = progress.add_task(self.name, total=self.steps, completed=done, loss="")
        model.train()
        start = time.monotonic() - seconds
        for step in range(done, self.steps):
            for group in optimizer.param_groups:
                group["lr"] = self.lr * _schedule(step, self.steps)
            loss = model(**next(self.batches)).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            progress.update(task, advance=1, loss=f"loss {loss.item():.3f}")
            if (step + 1) % config.save_every == 0 or step + 1 == self.steps:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}
                _save(self.checkpoint, {**state, "seconds": time.monotonic() - start, "identity": self.identity})
        return time.monotonic() - start


def _schedule(step: int, steps: int, warmup: int = 40, floor: float = 0.05) -> float:
    if step < warmup:
        return (step + 1) / warmup
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def _save(path: Path, state: dict[str, Any]) -> None:
    """Whole or not at all: a build killed while writing still has its previous checkpoint."""
    import torch

    temporary = path.with_suffix(".tmp")
    torch.save(state, temporary)
    temporary.replace(path)


def batches(sequences: Iterator[Tokens], config: PolicyConfig, pad: int) -> Iterator[dict[str, Any]]:
    """Packed batches: `input_ids`, `labels` and `position_ids`, each (rows, tokens). Sequences do not see each other."""
    import torch

    rows = pack(sequences, config.tokens, pad)
    while True:
        ids_BT, labels_BT, positions_BT = (
            torch.tensor(part) for part in zip(*itertools.islice(rows, config.rows), strict=True)
        )
        # without a cache, restarting positions make attention block-diagonal: sequences of a row do not see each other
        yield {"input_ids": ids_BT, "labels": labels_BT, "position_ids": positions_BT, "use_cache": False}
