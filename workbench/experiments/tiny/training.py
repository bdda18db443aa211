"""How the tiny policy is trained: packed batches of documents, then of instruction examples,
through one plain loop.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.experiments.tiny.curriculum import BETWEEN, LESSONS, Lesson, practice
from workbench.experiments.tiny.drills import DRILLS, Drill, DrillWriter, Turns
from workbench.experiments.tiny.examples import Habits, SFTWriter, replay
from workbench.experiments.tiny.skills import Example, SkillWriter
from workbench.experiments.tiny.tokenizer import ASSISTANT, BOS, EOS, SYSTEM, USER
from workbench.types import JsonObject, WorkbenchError
from workbench.world import lexicon, schema
from workbench.world.documents import Document
from workbench.world.world import World

if TYPE_CHECKING:
    import torch
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast


@dataclass(frozen=True)
class Tokens:
    """One sequence: token ids, labels (-100 where no loss is taken), and how much its labels
    weigh in a batch.
    """

    ids: list[int]
    labels: list[int]
    weight: float = 1.0


@dataclass(frozen=True)
class PolicyConfig:
    """Sizes and schedules. `tokens` is the length of a packed row, `rows` how many make a step."""

    scale: float = 1.0
    hidden: int = 128
    layers: int = 4
    heads: int = 4
    mlp: int = 384
    tokens: int = 256
    rows: int = 18
    passes: int = 24  # over the documents
    lessons: tuple[Lesson, ...] = LESSONS  # before the first pass, at `lesson_lr`
    # share of the tokens of a pass that are examples of skills: with .25 what compares was lost,
    # with .5
    skills: float = 0.3
    # too little of the documents is learnt
    mix: dict[str, int] = field(default_factory=lambda: dict(BETWEEN))
    lesson_lr: float = 2.5e-3
    lr: float = 2.5e-3
    sft_steps: int = 700
    # with 5e-4, and examples that weigh as before, what is half known was lost (.64 to .32)
    sft_lr: float = 3e-4
    sft_emphasis: float = 1.0
    sft_replay: float = 0.6  # share of the tokens that are pre-training documents
    emphasis: float = 2.5  # weight of an example's tokens beside a document's
    weight_decay: float = 0.05
    save_every: int = 100
    habits: Habits = field(default_factory=Habits)


ASKED = 25  # steps between exams
SHORT = (Lesson(30, 0.9, {"copying": 1}), Lesson(30, 0.0, {"equality": 1}, {"who": 1}))
SIZES = {
    "full": PolicyConfig(),
    "small": PolicyConfig(
        scale=0.05,
        hidden=64,
        layers=2,
        mlp=192,
        rows=8,
        passes=10,
        lessons=SHORT,
        sft_steps=80,
        save_every=20,
    ),
}


class Encoder:
    """Documents and conversations to token ids, exactly as the chat template would lay them out.

    A passage of hundreds of tokens may teach two or three: the labels of examples weigh
    `emphasis` times a document's. Further turns of an example are left out where it would be
    longer than `longest` tokens.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerFast, emphasis: float = 1.0, longest: int = 256
    ) -> None:
        self.tokenizer, self.emphasis, self.longest = tokenizer, emphasis, longest
        self.pad: int = tokenizer.convert_tokens_to_ids(tokenizer.pad_token)
        self.mark = {
            token: tokenizer.convert_tokens_to_ids(token)
            for token in (BOS, EOS, SYSTEM, USER, ASSISTANT)
        }

    def words(self, text: str) -> list[int]:
        spaced = text if text.startswith(("<think>", "<answer>", "[", "\\boxed")) else f" {text}"
        return self.tokenizer(spaced, add_special_tokens=False)["input_ids"]

    def document(self, document: Document) -> Tokens:
        """A pre-training document: loss on every token."""
        head = (
            self._turns(document.system, document.prompt) if document.prompt else [self.mark[BOS]]
        )
        ids = [*head, *self.words(document.text), self.mark[EOS]]
        return Tokens(ids, ids)

    def example(self, example: Example) -> Tokens:
        """An instruction example: loss on what is to be learnt of the reply alone."""
        given = self.words(example.given) if example.given else []
        ids = [*self._turns(example.system, example.prompt), *given]
        labels = [-100] * len(ids)
        reply = [*self.words(example.reply)[len(given) :], self.mark[EOS]]
        ids, labels = [*ids, *reply], [*labels, *reply]
        for question, answer in example.more:
            asked = [self.mark[USER], *self.words(question), self.mark[ASSISTANT]]
            reply = [*self.words(answer), self.mark[EOS]]
            if len(ids) + len(asked) + len(reply) > self.longest:
                break
            ids, labels = [*ids, *asked, *reply], [*labels, *[-100] * len(asked), *reply]
        return Tokens(ids, labels, self.emphasis)

    def drills(self, seed: int | str) -> DrillWriter:
        """Drills on the words that the tokenizer knows."""
        vocabulary = self.tokenizer.get_vocab()
        verdicts = {self._word(word) for answers in schema.YES_NO.values() for word in answers}
        space = self.tokenizer.tokenize(" a")[0][0]
        names: list[int] = []
        small: list[int] = []
        for piece in sorted(vocabulary):
            word = piece[1:]
            if piece[0] != space or not word.isalpha():
                continue
            # A word that also occurs without its capital only begins a sentence.
            is_name = not word.islower() and space + word.lower() not in vocabulary
            (names if is_name else small).append(vocabulary[piece])
        years = [self._word(year) for year in lexicon.BIRTH_YEARS]
        yes, no = (self._word(word) for word in schema.YES_NO["en"])
        _, stop, asks = self.words("a.?")
        turns = Turns(self.mark[USER], self.mark[ASSISTANT], self.mark[EOS], stop, asks)
        signs = [*turns, *(self.words(sign)[-1] for sign in (*schema.MARKERS, *schema.SOURCES))]
        fillers = [word for word in small if word not in verdicts]
        mark = self._word("<answer>")
        return DrillWriter(fillers, signs, names, years, (yes, no), mark, turns, seed)

    def practised(self, shown: Drill | Example) -> Tokens:
        if isinstance(shown, Example):
            return self.example(shown)
        ids, learnt = shown
        labels = [token if flag else -100 for token, flag in zip(ids, learnt, strict=True)]
        return Tokens([self.mark[BOS], *ids], [-100, *labels])

    def _word(self, word: str) -> int:
        (token,) = self.words(word)
        return token

    def _turns(self, system: str, prompt: str) -> list[int]:
        ids = [self.mark[BOS]]
        if system:
            ids += [self.mark[SYSTEM], *self.words(system)]
        return [*ids, self.mark[USER], *self.words(prompt), self.mark[ASSISTANT]]


Row = tuple[list[int], list[int], list[int], list[float]]  # ids, labels, positions, weights
NAMES = ("input_ids", "labels", "position_ids", "weights")
Batches = Iterator[JsonObject]  # endless; tensors by name, each (rows, tokens)


def pack(sequences: Iterable[Tokens], length: int, pad: int, open_rows: int = 8) -> Iterator[Row]:
    """Whole sequences into rows of `length`: ids, labels, positions, weights. Positions restart
    at 0 with each sequence.

    A sequence goes into the first of `open_rows` rows that has room for it; where none has, the
    first is closed.
    """
    rows: list[Row] = []
    for sequence in sequences:
        size = len(sequence.ids)
        assert size <= length, f"a sequence of {size} tokens for rows of {length}"
        row = next((row for row in rows if len(row[0]) + size <= length), None)
        if row is None:
            if len(rows) == open_rows:
                yield _filled(rows.pop(0), length, pad)
            row = ([], [], [], [])
            rows.append(row)
        row[0].extend(sequence.ids)
        row[1].extend([-100, *sequence.labels[1:]])
        row[2].extend(range(size))
        row[3].extend([sequence.weight] * size)
    for row in rows:
        yield _filled(row, length, pad)


def _filled(row: Row, length: int, pad: int) -> Row:
    ids, labels, positions, weights = row
    gap = length - len(ids)
    ids += [pad] * gap
    labels += [-100] * gap
    positions += range(gap)
    weights += [1.0] * gap
    return row


def practising(
    world: World, encoder: Encoder, mix: Mapping[str, int], seed: int | str
) -> Iterator[Drill | Example]:
    """Drills and examples without end."""
    return practice(mix, encoder.drills(seed), SkillWriter(world.ephemeral(), seed), seed)


def taught(world: World, encoder: Encoder, config: PolicyConfig, number: int, seed: int) -> Batches:
    """The batches of a lesson, without end."""
    shown = practising(world, encoder, config.lessons[number].mix, f"lesson-{number}-{seed}")
    return batches((encoder.practised(one) for one in shown), config, encoder.pad)


def papers(
    world: World, encoder: Encoder, lesson: Lesson, seed: int, count: int = 100
) -> dict[str, list[Tokens]]:
    """What the exam of a lesson asks, for each kind that it teaches."""
    return {
        kind: [
            encoder.practised(replace(one, more=()) if isinstance(one, Example) else one)
            for one in itertools.islice(
                practising(world, encoder, {kind: 1}, f"exam-{seed}"), count
            )
        ]
        for kind in lesson.taught
    }


def right(model: LlamaForCausalLM, sequences: Sequence[Tokens], whole: bool) -> float:
    """The share of labels that are the likeliest token, or with `whole` of sequences of which
    all are.
    """
    import torch

    length = max(len(sequence.ids) for sequence in sequences)
    ids_BT = torch.zeros(len(sequences), length, dtype=torch.long)
    labels_BT = torch.full((len(sequences), length), -100)
    for row, sequence in enumerate(sequences):
        ids_BT[row, : len(sequence.ids)] = torch.tensor(sequence.ids)
        labels_BT[row, : len(sequence.labels)] = torch.tensor(sequence.labels)
    with torch.no_grad():
        found_BT = model(input_ids=ids_BT, use_cache=False).logits[:, :-1].argmax(-1)
    learnt_BT = labels_BT[:, 1:] != -100
    same_BT = (found_BT == labels_BT[:, 1:]) & learnt_BT
    if whole:
        return (same_BT.sum(1) == learnt_BT.sum(1)).float().mean().item()
    return (same_BT.sum() / learnt_BT.sum()).item()


def pretraining(
    world: World, encoder: Encoder, config: PolicyConfig, seed: int
) -> tuple[Batches, int, int]:
    """Pre-training batches without end, how many of them make about `config.passes` (rows are
    not filled to the last token, and the shares of documents and skills hold on average), and
    the tokens of one pass.

    Documents, reshuffled each pass; between them stand examples of skills, new in every pass, as
    `config.skills` says.
    """
    encoded = [encoder.document(document) for document in world.documents]

    def documents() -> Iterator[Tokens]:
        for number in itertools.count():
            yield from random.Random(f"pass-{seed}-{number}").sample(encoded, len(encoded))

    skills = (encoder.practised(one) for one in practising(world, encoder, config.mix, seed))
    tokens = round(sum(len(sequence.ids) for sequence in encoded) / (1 - config.skills))
    steps = max(1, tokens * config.passes // (config.rows * config.tokens))
    return batches(mixed(documents(), skills, config.skills), config, encoder.pad), steps, tokens


def mixed(first: Iterator[Tokens], second: Iterator[Tokens], share: float) -> Iterator[Tokens]:
    """Two streams as one; `share` of the tokens, whenever it is counted, come from the second."""
    tokens = [0, 0]
    while True:
        turn = tokens[1] < share * sum(tokens) or (share > 0 and not any(tokens))
        sequence = next(second if turn else first)
        tokens[turn] += len(sequence.ids)
        yield sequence


def instruction(world: World, encoder: Encoder, config: PolicyConfig, seed: int) -> Batches:
    """SFT batches without end: instruction examples with replayed documents between them."""
    examples = (
        encoder.example(example) for example in SFTWriter(world, config.habits, seed).examples()
    )
    documents = (encoder.document(document) for document in replay(world, seed))
    return batches(mixed(examples, documents, config.sft_replay), config, encoder.pad)


def new_model(
    config: PolicyConfig, tokenizer: PreTrainedTokenizerFast, seed: int
) -> LlamaForCausalLM:
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
    """One training stage: AdamW with warm-up and cosine decay to `floor`, checkpointed every
    `save_every` steps.

    With an `exam`, held every `ASKED` steps and at the last, it ends as soon as `level` is right
    of each kind; `rates` are what was right in the last one.

    `identity` names all that its weights depend on; a checkpoint of another identity is refused.
    """

    name: str
    steps: int
    lr: float
    batches: Batches
    checkpoint: Path
    identity: str
    floor: float = 0.05  # share of the learning rate that is left at the end
    exam: Mapping[str, Sequence[Tokens]] = field(default_factory=dict)
    level: float = 1.0
    rates: dict[str, float] = field(default_factory=dict)

    def run(self, model: LlamaForCausalLM, config: PolicyConfig, progress: Any) -> float:
        """Train in place; returns the seconds spent (over all resumptions)."""
        import torch

        optimizer = torch.optim.AdamW(
            model.parameters(), lr=self.lr, betas=(0.9, 0.98), weight_decay=config.weight_decay
        )
        done, seconds = 0, 0.0
        if self.checkpoint.exists():
            state = self.stored()
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            done, seconds = state["step"], state["seconds"]
            self.rates = state["rates"]
            if state["finished"]:
                self.steps = done
            if done < self.steps:
                # the data goes on where it was
                next(itertools.islice(self.batches, done - 1, done), None)
        task = progress.add_task(self.name, total=self.steps, completed=done, loss="")
        model.train()
        start = time.monotonic() - seconds
        for step in range(done, self.steps):
            for group in optimizer.param_groups:
                group["lr"] = self.lr * _schedule(step, self.steps, self.floor)
            loss = loss_of(model, next(self.batches))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            progress.update(task, advance=1, loss=f"loss {loss.item():.3f}")
            finished = self._learnt(model, step + 1) or step + 1 == self.steps
            if (step + 1) % config.save_every == 0 or finished:
                state = {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "step": step + 1,
                    "finished": finished,
                    "rates": self.rates,
                    "seconds": time.monotonic() - start,
                    "identity": self.identity,
                }
                # whole or not at all: a build killed here still has its previous checkpoint
                temporary = self.checkpoint.with_suffix(".tmp")
                torch.save(state, temporary)
                temporary.replace(self.checkpoint)
            if finished:
                self.steps = step + 1
                break
        return time.monotonic() - start

    def stored(self) -> JsonObject:
        """What the stage's checkpoint holds.

        Raises:
            WorkbenchError: it is of another build.
        """
        import torch

        state: JsonObject = torch.load(self.checkpoint, weights_only=True)
        if state["identity"] != self.identity:
            raise WorkbenchError(
                f"{self.checkpoint} is of a build with other settings; delete it or choose another"
                " --out"
            )
        return state

    def _learnt(self, model: LlamaForCausalLM, step: int) -> bool:
        if not self.exam or (step % ASKED and step != self.steps):
            return False
        # Of drills the share of correct words counts, of examples that of wholly correct replies.
        self.rates = {
            kind: right(model, paper, whole=kind not in DRILLS) for kind, paper in self.exam.items()
        }
        return min(self.rates.values()) >= self.level


def loss_of(model: LlamaForCausalLM, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """The weighted mean cross-entropy of the labelled tokens; logits are made for those alone.

    In bfloat16 where the CPU computes it.
    """
    import torch

    targets_BT = batch["labels"][:, 1:]
    learnt_BT = targets_BT != -100
    with torch.autocast(
        "cpu", torch.bfloat16, enabled=torch.ops.mkldnn._is_mkldnn_bf16_supported()
    ):
        hidden_BTD = model.model(
            input_ids=batch["input_ids"], position_ids=batch["position_ids"], use_cache=False
        ).last_hidden_state
        logits_NV = model.lm_head(hidden_BTD[:, :-1][learnt_BT])
    losses_N = torch.nn.functional.cross_entropy(
        logits_NV.float(), targets_BT[learnt_BT], reduction="none"
    )
    weights_N = batch["weights"][:, 1:][learnt_BT]
    return (losses_N * weights_N).sum() / weights_N.sum()


def _schedule(step: int, steps: int, floor: float, warmup: int = 40) -> float:
    if step < warmup:
        return (step + 1) / warmup
    return floor + (1 - floor) * 0.5 * (
        1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup))
    )


def batches(sequences: Iterator[Tokens], config: PolicyConfig, pad: int) -> Batches:
    """Packed batches: `input_ids`, `labels`, `position_ids` and `weights`, each (rows, tokens).

    Without a cache, positions that begin again make attention block-diagonal: the sequences of a
    row do not see each other.
    """
    import torch

    rows = pack(sequences, config.tokens, pad)
    while True:
        parts = zip(*itertools.islice(rows, config.rows), strict=True)
        yield dict(zip(NAMES, map(torch.tensor, parts), strict=True))
