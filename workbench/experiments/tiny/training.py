"""Training of the tiny policy: packed batches of lessons, documents and instruction examples."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.experiments.tiny.config import PolicyConfig
from workbench.experiments.tiny.curriculum import Lesson
from workbench.experiments.tiny.drills import DRILLS, Drill, DrillWriter, Turns
from workbench.experiments.tiny.examples import SFTWriter, replay
from workbench.experiments.tiny.skills import SkillWriter
from workbench.experiments.tiny.tokenizer import ASSISTANT, BOS, EOS, SYSTEM, USER
from workbench.experiments.tiny.writer import Example
from workbench.types import JsonObject, WorkbenchError
from workbench.world import lexicon, schema
from workbench.world.documents import Document
from workbench.world.world import World

if TYPE_CHECKING:
    import torch
    from rich.progress import Progress
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast


@dataclass(frozen=True)
class Tokens:
    """One training sequence: token ids, labels and the weight of its loss."""

    ids: list[int]
    labels: list[int]  # token ids, or -100 without a loss
    weight: float = 1.0  # weight of the losses in a batch


EXAM_EVERY, WARMUP = 25, 40  # steps


class Encoder:
    """Encodes documents, conversations and drills as training sequences.

    Conversations, and documents with a prompt, are encoded as the chat template encodes them.

    Args:
        tokenizer: the tokenizer of the policy.
        emphasis: weight of the loss of instruction examples. Documents and drills have weight 1.
        longest: maximum tokens of an example with several turns; later turns are left out.
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
        """Return the token ids of a text.

        A space is put before the text, because word tokens include one. Text that begins with a
        section marker, such as "<think>", gets no space.
        """
        spaced = text if text.startswith(("<think>", "<answer>", "[", "\\boxed")) else f" {text}"
        return self.tokenizer(spaced, add_special_tokens=False)["input_ids"]

    def document(self, document: Document) -> Tokens:
        """Encode a pre-training document, with a loss on every token."""
        head = (
            self._turns(document.system, document.prompt) if document.prompt else [self.mark[BOS]]
        )
        ids = [*head, *self.words(document.text), self.mark[EOS]]
        return Tokens(ids, ids)

    def example(self, example: Example) -> Tokens:
        """Encode an instruction example, with a loss on its replies only.

        The beginning of the reply has no loss if it is given as `example.prefix`. With the prefix
        "<think> a b", only the end of the reply "<think> a b</think> c" has a loss.
        """
        prefix = self.words(example.prefix) if example.prefix else []
        ids = [*self._turns(example.system, example.prompt), *prefix]
        labels = [-100] * len(ids)
        reply = [*self.words(example.reply)[len(prefix) :], self.mark[EOS]]
        ids, labels = [*ids, *reply], [*labels, *reply]
        for question, answer in example.more:
            prompt = [self.mark[USER], *self.words(question), self.mark[ASSISTANT]]
            reply = [*self.words(answer), self.mark[EOS]]
            if len(ids) + len(prompt) + len(reply) > self.longest:
                break
            ids, labels = [*ids, *prompt, *reply], [*labels, *[-100] * len(prompt), *reply]
        return Tokens(ids, labels, self.emphasis)

    def drills(self, seed: int | str) -> DrillWriter:
        """Return a `DrillWriter` that uses the words of the tokenizer."""
        vocabulary = self.tokenizer.get_vocab()
        verdicts = {self._word(word) for answers in schema.YES_NO.values() for word in answers}
        space = self.tokenizer.tokenize(" a")[0][0]
        names: list[int] = []
        small: list[int] = []
        for piece in sorted(vocabulary):
            word = piece[1:]
            if piece[0] != space or not word.isalpha():
                continue
            # a word that also occurs in lower case is only capitalised at the start of a sentence
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

    def practice_item(self, item: Drill | Example) -> Tokens:
        """Encode a drill or an example as a training sequence."""
        if isinstance(item, Example):
            return self.example(item)
        ids, learnt = item
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
    """Pack whole sequences into rows of `length` tokens. Positions restart with each sequence.

    A sequence goes into the first open row with enough space. If no row has enough space and there
    are `open_rows` rows, the oldest row is padded and yielded.

    Args:
        pad: id of the padding token.
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
        # the first token of a sequence must not be predicted from the sequence before it
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


def practice_items(
    world: World, encoder: Encoder, mix: Mapping[str, int], seed: int | str
) -> Iterator[Drill | Example]:
    """Yield random drills and examples without end.

    `mix` has the sampling weight of each kind, such as {"copying": 3, "two_hop": 1}. Drills consist
    of words from the encoder's tokenizer.
    """
    drills, skills = encoder.drills(seed), SkillWriter(world.ephemeral(), seed)
    rng = random.Random(f"practice-{seed}")
    while True:
        (kind,) = rng.choices(*zip(*mix.items(), strict=True))
        yield drills.draw(kind) if kind in DRILLS else skills.draw(kind)


def lesson_batches(
    world: World, encoder: Encoder, config: PolicyConfig, number: int, seed: int
) -> Batches:
    """Yield training batches of a lesson without end. `number` is its index in `config.lessons`."""
    items = practice_items(world, encoder, config.lessons[number].mix, f"lesson-{number}-{seed}")
    return batches(map(encoder.practice_item, items), config, encoder.pad)


def exam_items(
    world: World, encoder: Encoder, lesson: Lesson, seed: int
) -> dict[str, list[Tokens]]:
    """Return the exam of a lesson: new kind of drill or example -> 100 encoded sequences.

    Examples with several turns have only their first turn.
    """
    exam = {}
    for kind in lesson.taught:
        items = practice_items(world, encoder, {kind: 1}, f"exam-{seed}")
        exam[kind] = [
            encoder.practice_item(replace(item, more=()) if isinstance(item, Example) else item)
            for item in itertools.islice(items, 100)
        ]
    return exam


def accuracy(model: LlamaForCausalLM, sequences: Sequence[Tokens], whole: bool) -> float:
    """Return the share of labels that the model predicts greedily.

    With `whole`, return the share of sequences in which it predicts all labels.
    """
    import torch
    from torch.nn.utils.rnn import pad_sequence

    ids_BT = pad_sequence([torch.tensor(one.ids) for one in sequences], batch_first=True)
    labels_BT = pad_sequence(
        [torch.tensor(one.labels) for one in sequences], batch_first=True, padding_value=-100
    )
    with torch.no_grad():
        predicted_BT = model(input_ids=ids_BT, use_cache=False).logits[:, :-1].argmax(-1)
    learnt_BT = labels_BT[:, 1:] != -100
    same_BT = (predicted_BT == labels_BT[:, 1:]) & learnt_BT
    if whole:
        return (same_BT.sum(1) == learnt_BT.sum(1)).float().mean().item()
    return (same_BT.sum() / learnt_BT.sum()).item()


def pretraining_batches(
    world: World, encoder: Encoder, config: PolicyConfig, seed: int
) -> tuple[Batches, int, int]:
    """Return endless pre-training batches, the number of steps, and the tokens of one pass.

    A pass has all documents in a new random order. New examples of skills are mixed in; their share
    of the tokens is `config.skills`. The number of steps is enough for about `config.passes`
    passes.
    """
    encoded = [encoder.document(document) for document in world.documents]

    def passes() -> Iterator[Tokens]:
        for number in itertools.count():
            yield from random.Random(f"pass-{seed}-{number}").sample(encoded, len(encoded))

    skills = map(encoder.practice_item, practice_items(world, encoder, config.mix, seed))
    tokens = round(sum(len(sequence.ids) for sequence in encoded) / (1 - config.skills))
    steps = max(1, tokens * config.passes // (config.rows * config.tokens))
    sequences = interleave(passes(), skills, config.skills)
    return batches(sequences, config, encoder.pad), steps, tokens


def interleave(first: Iterator[Tokens], second: Iterator[Tokens], share: float) -> Iterator[Tokens]:
    """Merge two endless streams, so that about `share` of the tokens are from the second."""
    tokens = [0, 0]
    while True:
        turn = tokens[1] < share * sum(tokens) or (share > 0 and not any(tokens))
        sequence = next(second if turn else first)
        tokens[turn] += len(sequence.ids)
        yield sequence


def sft_batches(world: World, encoder: Encoder, config: PolicyConfig, seed: int) -> Batches:
    """Yield SFT batches without end: instruction examples mixed with pre-training documents."""
    writer = SFTWriter(world, config.habits, seed)
    examples = map(encoder.example, writer.examples(config.instructions))
    documents = map(encoder.document, replay(world.documents, seed))
    return batches(interleave(examples, documents, config.sft_replay), config, encoder.pad)


def new_model(
    config: PolicyConfig, tokenizer: PreTrainedTokenizerFast, seed: int
) -> LlamaForCausalLM:
    """Return a Llama model with random weights, for the vocabulary of a tokenizer."""
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
    """One training stage: AdamW with warm-up and cosine decay, and checkpoints to resume from.

    A stage may have an exam: test sequences of several kinds. It ends early if the accuracy on each
    kind reaches `level`. The exam takes place every 25 steps (`EXAM_EVERY`) and at the end.
    """

    name: str
    steps: int  # at most; after `run`, the number of steps taken
    lr: float
    batches: Batches
    checkpoint: Path
    identity: str  # of everything that the weights depend on; other checkpoints are refused
    floor: float = 0.05  # share of the learning rate that is left at the end
    exam: Mapping[str, Sequence[Tokens]] = field(default_factory=dict)
    level: float = 1.0  # accuracy that the exam requires for each kind
    rates: dict[str, float] = field(default_factory=dict)  # accuracy by kind in the last exam

    def run(self, model: LlamaForCausalLM, config: PolicyConfig, progress: Progress) -> float:
        """Train a model in place, from the last checkpoint if there is one.

        Return the seconds of training, including the time before the checkpoint.
        """
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
            if done < self.steps:  # skip the batches of the steps that are done
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
            finished = self._passes_exam(model, step + 1) or step + 1 == self.steps
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
                # atomic: a build that is killed here still has the previous checkpoint
                temporary = self.checkpoint.with_suffix(".tmp")
                torch.save(state, temporary)
                temporary.replace(self.checkpoint)
            if finished:
                self.steps = step + 1
                break
        return time.monotonic() - start

    def stored(self) -> JsonObject:
        """Load the checkpoint of the stage: weights, optimizer state, step and results.

        Raises:
            WorkbenchError: the checkpoint was written with other settings or data.
        """
        import torch

        state: JsonObject = torch.load(self.checkpoint, weights_only=True)
        if state["identity"] != self.identity:
            raise WorkbenchError(
                f"'{self.checkpoint}' belongs to a build with other settings: delete the file, or"
                " choose another --out folder"
            )
        return state

    def _passes_exam(self, model: LlamaForCausalLM, step: int) -> bool:
        if not self.exam or (step % EXAM_EVERY and step != self.steps):
            return False
        # the share of correct words in drills, of wholly correct replies in examples
        self.rates = {
            kind: accuracy(model, items, whole=kind not in DRILLS)
            for kind, items in self.exam.items()
        }
        return min(self.rates.values()) >= self.level


def loss_of(model: LlamaForCausalLM, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the mean cross-entropy of a batch's labelled tokens, weighted by token.

    The tensors of the batch have the shape (rows, tokens). Logits are computed for labelled tokens
    only, in bfloat16 if the CPU supports it.
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
        logits_NV = model.lm_head(hidden_BTD[:, :-1][learnt_BT])  # N labelled tokens
    losses_N = torch.nn.functional.cross_entropy(
        logits_NV.float(), targets_BT[learnt_BT], reduction="none"
    )
    weights_N = batch["weights"][:, 1:][learnt_BT]
    return (losses_N * weights_N).sum() / weights_N.sum()


def _schedule(step: int, steps: int, floor: float) -> float:
    if step < WARMUP:
        return (step + 1) / WARMUP
    part = (step - WARMUP) / max(1, steps - WARMUP)
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * part))


def batches(sequences: Iterator[Tokens], config: PolicyConfig, pad: int) -> Batches:
    """Yield batches of packed sequences, without end.

    A batch has the tensors `input_ids`, `labels`, `position_ids` and `weights`, each of shape
    (rows, tokens). Positions restart with each sequence. transformers reads this as a
    boundary, if no KV cache is used: a sequence does not attend to the others in its row.
    """
    import torch

    rows = pack(sequences, config.tokens, pad)
    while True:
        parts = zip(*itertools.islice(rows, config.rows), strict=True)
        yield dict(zip(NAMES, map(torch.tensor, parts), strict=True))
