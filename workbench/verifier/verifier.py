"""Compute calibrated probabilities that a premise, or several passages, support a claim."""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.credit.attribute import words
from workbench.text.sentences import sentences
from workbench.types import JsonMapping, Passage, Span, WorkbenchError
from workbench.util.grouping import split_batches
from workbench.util.jsonl import encodable
from workbench.util.minilm import BASE_SHA256
from workbench.verifier.instructions import strip_instructions
from workbench.verifier.mentions import Mentions, Objection, objections
from workbench.verifier.model import (
    MAX_LENGTH,
    Encoder,
    Pairs,
    base_folder,
    collate,
    expand,
    for_inference,
    logits,
)
from workbench.verifier.reading import Reading, read_claim
from workbench.verifier.rows import LABELS

if TYPE_CHECKING:
    import torch

# *(ours)* most windows that the model reads for a claim
MOST_WINDOWS = 8
BATCH = 32  # most pairs in a batch
BATCH_TOKENS = 2048  # most tokens per batch including padding: bounds the memory
# part of the repository, not of the wheel
SHIPPED = Path(__file__).resolve().parents[2] / "data" / "verifier"
ADAPTER = "adapter.safetensors"  # file in a verifier's folder
Passages = Sequence[Passage | str]
Triple = tuple[float, float, float]  # p(support), p(contradict), p(neutral)
# *(ours)* Cap on p(support) of a claim with an objection, as a share of `Settings.split`.
OBJECTION_CAP = 0.7
NEAR = 0.1  # within this distance of the threshold, about half of the `correct` labels are right
# How the probabilities of several windows are combined to one p(support) and p(contradict):
# "decisive" takes both from the window with the highest of them, "max" takes each maximum.
POOLS: Mapping[str, Callable[[Sequence[Triple]], tuple[float, float]]] = {
    "decisive": lambda triples: max(triples, key=lambda triple: max(triple[:2]))[:2],
    "max": lambda triples: (max(t[0] for t in triples), max(t[1] for t in triples)),
}


@dataclass(frozen=True)
class Settings:
    """The fitted temperature and thresholds of a verifier, and its limits for long evidence.

    The larger of p(support) and p(contradict) is compared with its threshold, `support` or
    `contradict`. If it reaches the threshold, the label is `correct` or `wrong`, otherwise `vague`.

    Attributes:
        temperature: divides the scores (Guo et al., arXiv 1706.04599).
        support, contradict: the thresholds of the labels `correct` and `wrong`.
        split: threshold of p(support) for the two-way decision "supported or not".
        window: maximum size of a window (a part of a passage) in word pieces; consecutive windows
            overlap by about half.
        pool: how the probabilities of several windows are combined: "decisive" takes the window
            with the highest p(support) or p(contradict), "max" the maximum of each.
        max_length: maximum length of a pair (premise and claim) in word pieces.
    """

    temperature: float = 1.0
    support: float = 0.5
    contradict: float = 0.5
    split: float = 0.5
    window: int = 120
    pool: str = "decisive"  # a key of `POOLS`
    max_length: int = MAX_LENGTH


@dataclass(frozen=True)
class Entailment:
    """The result of checking one claim: its probabilities, the deciding window and the objections.

    A window is a part of a passage.

    Attributes:
        support, contradict, neutral: the probabilities of the three classes.
        passage: index of the passage with the deciding window; None if no window was read.
        span: characters of the deciding window in this passage; None if no window was read.
        windows: number of windows read.
        objections: numbers and names of the claim that the passages do not mention.
        unread: why the claim was not compared, a key of `REASONS`; "" if it was compared.
    """

    support: float
    contradict: float
    neutral: float
    passage: int | None = None
    span: Span | None = None
    windows: int = 0
    objections: tuple[Objection, ...] = ()
    unread: str = ""


@dataclass(frozen=True)
class Window:
    """A part of a passage: characters `start` to `end` of its text.

    `passage` is the index of the passage. `premise` is the text that the model reads: the title of
    the passage and this part.
    """

    passage: int
    start: int
    end: int
    premise: str


class Verifier:
    """A cross-encoder that compares claims with passages. `load_verifier` loads one.

    A claim is checked in four steps:

    * `read` converts the claim to the text that the model reads, such as "Ana was born in Oslo" for
      "Ana was not born in Oslo".
    * `preprocess` removes instructions to the judge from this text.
    * The model compares the text with the evidence, the passages of the claim.
    * `object_to` returns the objections: numbers and names that the evidence does not mention.
    """

    def __init__(
        self,
        model: "torch.nn.Module",
        settings: Settings = Settings(),
        name: str = "local",
        encoder: Encoder | None = None,
    ) -> None:
        self.model, self.settings, self.name = model, settings, name
        self.read: Callable[[str], Reading] = read_claim
        # benchmarks replace these two, to measure their effect
        self.preprocess: Callable[[str], str] = strip_instructions
        self.object_to: Callable[[str, Mentions], list[Objection]] = objections
        self.encoder = encoder or Encoder(settings.max_length)
        self.labels: tuple[str, ...] = LABELS  # a two-way model lacks "contradict"

    def scores(self, pairs: Pairs) -> "torch.Tensor":
        """Return uncalibrated scores (number of pairs, 3), with columns in the order of `LABELS`.

        Instructions to the judge are removed from the claims first.
        """
        import torch

        encoded = self.encoder.pairs(
            [(premise, self.preprocess(claim)) for premise, claim in pairs]
        )
        order = sorted(range(len(encoded)), key=lambda i: len(encoded[i][0]))
        scores_NK = torch.zeros(len(encoded), 3)
        with torch.inference_mode():
            while order:
                indices = order[-min(BATCH, max(1, BATCH_TOKENS // len(encoded[order[-1]][0]))) :]
                scores_NK[indices] = logits(self.model, collate([encoded[i] for i in indices]))
                del order[-len(indices) :]
        return scores_NK

    def predict(self, pairs: Pairs) -> list[Triple]:
        """Return calibrated (support, contradict, neutral) of each (premise, claim); the sum is 1.

        A premise is cut if the pair is longer than `settings.max_length` word pieces. `check` reads
        long evidence in windows instead.
        """
        # samples of one question repeat each other's claims: the model reads each pair once
        distinct = list(dict.fromkeys(pairs))
        scores_NK = self.scores(distinct) / self.settings.temperature
        triples = [(p[0], p[1], p[2]) for p in scores_NK.double().softmax(-1).tolist()]
        by_pair = dict(zip(distinct, triples, strict=True))
        return [by_pair[pair] for pair in pairs]

    def check(self, claim: str, passages: Passages) -> Entailment:
        """Check one claim against its passages. `check_all` describes the rules."""
        return self.check_all([(claim, passages)])[0]

    def check_all(self, claims: Sequence[tuple[str, Passages]]) -> list[Entailment]:
        """Check each claim against its passages, and return the results in order.

        * A passage is divided into windows of whole sentences. The model reads the windows that
          share most words with the claim (`relevant`). By default, the window with the highest
          p(support) or p(contradict) decides alone. `Settings.pool` can change this.
        * If the passages lack a number or name of the claim (an objection), p(support) is limited
          to a value below `Settings.split`, so the claim does not count as supported.
        * The p(support) of a denial is the p(contradict) of the denied statement.
        * The result is neutral for a claim without passages, and for a claim that cannot be read
          (`workbench.verifier.reading`).

        Args:
            claims: pairs of a claim and its passages.
        """
        # Claims of one response usually share their passages.
        spans = cache(lambda text: windows(text, self.encoder, self.settings.window))
        mentions = cache(lambda texts: Mentions(texts))
        readings = [self.read(claim) for claim, _ in claims]
        claim_windows = [
            []
            if reading.unread
            else relevant(self.preprocess(reading.text), self._windows(passages, spans))
            for reading, (_, passages) in zip(readings, claims, strict=True)
        ]
        pairs = [
            (window.premise, reading.text)
            for reading, own_windows in zip(readings, claim_windows, strict=True)
            for window in own_windows
        ]
        # one call for all windows, so that pairs of similar length share a batch
        triples = iter(self.predict(pairs))
        checks = [
            self._pool(own_windows, [next(triples) for _ in own_windows])
            for own_windows in claim_windows
        ]
        for i, (reading, (_, passages)) in enumerate(zip(readings, claims, strict=True)):
            if checks[i].windows:
                texts = (
                    f"{passage.title}. {passage.text}" if isinstance(passage, Passage) else passage
                    for passage in passages
                )
                found = self.object_to(self.preprocess(reading.text), mentions(tuple(texts)))
                if found:
                    support = min(checks[i].support, OBJECTION_CAP * self.settings.split)
                    neutral = checks[i].neutral + checks[i].support - support
                    checks[i] = replace(
                        checks[i], support=support, neutral=neutral, objections=tuple(found)
                    )
            checks[i] = _of_claim(checks[i], reading)
        return checks

    def label(self, check: Entailment) -> str:
        """Return `correct`, `vague` or `wrong` by the thresholds of `Settings`.

        A claim with an objection is labelled `wrong`.
        """
        # On the pairs used to choose the rules, 1 in 8 claims with an objection is true. This share
        # is larger among the claims that the model alone labels `wrong`.
        support, contradict, bounds = check.support, check.contradict, self.settings
        if check.objections or (contradict >= bounds.contradict and contradict > support):
            return "wrong"
        return "correct" if support >= max(bounds.support, contradict) else "vague"

    def is_close(self, check: Entailment) -> bool:
        """Whether p(support) is within .1 (`NEAR`) of the threshold for `correct`."""
        return check.windows > 0 and abs(check.support - self.settings.support) < NEAR

    def _windows(self, passages: Passages, spans: Callable[[str], list[Span]]) -> list[Window]:
        claim_windows: list[Window] = []
        for number, passage in enumerate(passages):
            page = passage if isinstance(passage, Passage) else Passage("", "", passage)
            title, text = encodable(page.title), encodable(page.text)
            for start, end in spans(text):
                part = text[start:end]
                if title and not part.startswith(title):
                    part = f"{title}. {part}"
                claim_windows.append(Window(number, start, end, part))
        return claim_windows

    def _pool(self, own_windows: Sequence[Window], triples: Sequence[Triple]) -> Entailment:
        if not own_windows:
            return Entailment(0.0, 0.0, 1.0)
        best = max(range(len(own_windows)), key=lambda i: max(triples[i][0], triples[i][1]))
        support, contradict = POOLS[self.settings.pool](triples)
        scale = max(1.0, support + contradict)  # the pool "max" may exceed 1
        support, contradict = support / scale, contradict / scale
        neutral, window = max(0.0, 1 - support - contradict), own_windows[best]
        return Entailment(
            support,
            contradict,
            neutral,
            passage=window.passage,
            span=(window.start, window.end),
            windows=len(own_windows),
        )


def _of_claim(check: Entailment, reading: Reading) -> Entailment:
    """Return the result for a claim, given the result for the text that was compared.

    If the claim denies this text, p(support) and p(contradict) are exchanged. If only a part of the
    claim is a denial, a contradiction is changed to neutral.
    """
    if reading.denied:  # an objection to the denied statement supports the denial
        support, contradict = check.contradict, check.support
        return replace(check, support=support, contradict=contradict, objections=())
    if reading.partial and check.contradict > check.support:
        neutral = check.neutral + check.contradict
        return replace(check, contradict=0.0, neutral=neutral, unread="denial")
    return replace(check, unread=reading.unread)


def relevant(claim: str, candidates: list[Window]) -> list[Window]:
    """Return the 8 (`MOST_WINDOWS`) windows that share most words with the claim, in text order.

    Rare words count more: a word that n of the N candidates have counts log(1 + N/n).
    """
    if len(candidates) <= MOST_WINDOWS:
        return candidates
    own, texts = {*words(claim)}, [{*words(window.premise)} for window in candidates]
    counts = Counter(word for text in texts for word in text)
    shared = [
        math.fsum(math.log(1 + len(texts) / counts[word]) for word in text & own) for text in texts
    ]
    best = sorted(range(len(texts)), key=lambda i: -shared[i])[:MOST_WINDOWS]
    return [candidates[i] for i in sorted(best)]


def windows(text: str, encoder: Encoder, size: int) -> list[Span]:
    """Return the windows of a text: spans of whole sentences with at most `size` word pieces each.

    Consecutive windows overlap by about half. A sentence longer than a window is cut. The windows
    cover every word of the text.
    """
    pieces = encoder.texts([text])[0].offsets
    if len(pieces) <= size:
        return [(pieces[0][0], pieces[-1][1])] if pieces else []
    units = _units(text, pieces, size)
    spans: list[Span] = []
    first = 0
    while first < len(units):
        last, filled = first, 0
        while last < len(units) and filled + units[last][2] <= size:
            filled += units[last][2]
            last += 1
        spans.append((units[first][0], units[last - 1][1]))
        if last == len(units):
            break
        skipped = 0
        while first < last and skipped < filled / 2:
            skipped += units[first][2]
            first += 1
    return spans


def _units(text: str, pieces: Sequence[Span], size: int) -> list[tuple[int, int, int]]:
    """Return the sentences of a text as (start, end, number of word pieces).

    A sentence of more than `size` word pieces is cut into parts.
    """
    ends = [*[end for _, end in sentences(text)][:-1], len(text)]
    units: list[tuple[int, int, int]] = []
    position = 0
    for end in ends:
        inside = []
        while position < len(pieces) and pieces[position][0] < end:
            inside.append(pieces[position])
            position += 1
        units += [(part[0][0], part[-1][1], len(part)) for part in split_batches(inside, size)]
    return units


def load_verifier(path: Path | str | None = None) -> Verifier:
    """Load a verifier from a folder.

    Args:
        path: a folder with `card.json` and an adapter; None loads the shipped verifier.

    Raises:
        WorkbenchError: the packaged base weights are not installed, the folder has no verifier, or
            its verifier was trained on base weights that differ from the packaged ones.
    """
    folder, settings = find_verifier(path)
    weights = for_inference(expand(read_tensors(folder / ADAPTER)))
    return Verifier(weights, settings, folder.name if path is not None else "local")


def find_verifier(path: Path | str | None = None) -> tuple[Path, Settings]:
    """Return the folder and the settings of a verifier without loading its weights.

    Args:
        path: a folder with `card.json` and an adapter; None: the shipped verifier.

    Raises:
        WorkbenchError: the packaged base weights are not installed, the folder has no verifier, or
            its verifier was trained on base weights that differ from the packaged ones.
    """
    base_folder()  # first, so that a missing package is reported before other problems
    folder = Path(path) if path is not None else SHIPPED
    try:
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
        settings = read_settings(card["settings"])
        base = card["base"]["sha256"]
        if not (folder / ADAPTER).exists():
            raise FileNotFoundError(folder / ADAPTER)
    except FileNotFoundError:
        raise WorkbenchError(
            f"{folder}: no verifier there: name a sequence classifier with --verifier, or choose"
            " another judge: `--judge world` for the closed world, `--judge URL --judge-model NAME`"
            " for an endpoint"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise WorkbenchError(
            f"{folder}/card.json is not a verifier's card ({error}): restore that folder"
        ) from None
    if base != BASE_SHA256:
        raise WorkbenchError(
            f"{folder} was trained on base weights {base[:12]}…, not on the packaged"
            f" {BASE_SHA256[:12]}…: name another verifier"
        )
    return folder, settings


def read_tensors(file: Path) -> "dict[str, torch.Tensor]":
    """Return the tensors of a safetensors file by name.

    Raises:
        WorkbenchError: the file is damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors: dict[str, torch.Tensor] = load_file(file)
    except SafetensorError as error:
        raise WorkbenchError(f"{file} cannot be read ({error}): restore that file") from None
    return tensors


def read_settings(stored: JsonMapping) -> Settings:
    """Convert the entry "settings" of a verifier's `card.json` to `Settings`.

    Raises:
        KeyError: a setting is missing or unknown.
    """
    names = {setting.name for setting in fields(Settings)}
    if set(stored) != names:
        raise KeyError(f"missing or unknown settings {sorted(set(stored) ^ names)}")
    return Settings(**stored)
