"""The verifier: calibrated probabilities for pairs of texts, and for a claim against passages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from workbench.text import sentences
from workbench.types import Passage, WorkbenchError
from workbench.util.minilm import BASE_SHA256
from workbench.verifier.mentions import Mentioned, Objection, objections
from workbench.verifier.model import MAX_LENGTH, Encoder, base_folder, collate, expand, logits
from workbench.verifier.plain import is_order, plain
from workbench.verifier.rows import LABELS

if TYPE_CHECKING:
    import torch

TOKENS = 4096  # of a batch at most, with its padding: bounds the memory
# in the repository, not in a wheel
SHIPPED = Path(__file__).resolve().parents[2] / "data" / "verifier"
ADAPTER = "adapter.safetensors"  # in a verifier's folder
Triple = tuple[float, float, float]  # p(support), p(contradict), p(neutral)
Unsupported = Literal["vague", "wrong"]
# *(ours)* A share of `Settings.split`: the cap on p(support) of a claim that a rule objects to. The
# cap is not a probability.
OBJECTED = 0.7
CLOSE = 0.1  # to the threshold of `correct`: about every second label is right there
# p(support) and p(contradict) of many windows
POOLS: Mapping[str, Callable[[Sequence[Triple]], tuple[float, float]]] = {
    "decisive": lambda triples: max(triples, key=lambda one: max(one[:2]))[:2],
    "max": lambda triples: (max(one[0] for one in triples), max(one[1] for one in triples)),
}


@dataclass(frozen=True)
class Settings:
    """Temperature and thresholds fitted on the dev rows, and how long evidence is read.

    `temperature` divides the scores (Guo et al., arXiv 1706.04599). A claim is `correct` from
    p(support) ≥ `support` on, and `wrong` from p(contradict) ≥ `contradict` on; in between lies
    the vague band. Where only supported or not is asked, `split` is the threshold of p(support).
    `window` is in word pieces, and a window begins half a window after the one before it.
    """

    temperature: float = 1.0
    support: float = 0.5
    contradict: float = 0.5
    split: float = 0.5
    window: int = 120
    pool: str = "decisive"  # how a claim's windows become one verdict: one of `POOLS`
    max_length: int = MAX_LENGTH


@dataclass(frozen=True)
class Check:
    """The result for one claim: pooled probabilities, the position of the passage that decided
    with the span in it, and the objections of the rules (`workbench.verifier.mentions`)."""

    support: float
    contradict: float
    neutral: float
    passage: int | None = None
    span: tuple[int, int] | None = None
    windows: int = 0
    objections: tuple[Objection, ...] = ()


@dataclass(frozen=True)
class Window:
    """A part of one passage: characters `start` to `end` of its text, and its premise."""

    passage: int
    start: int
    end: int
    premise: str


class Verifier:
    """A cross-encoder with its settings, as `load_verifier` returns it.

    It judges `read(claim)`. `object_to` returns the objections to a whole claim.
    """

    def __init__(
        self,
        model: Any,
        settings: Settings = Settings(),
        name: str = "local",
        read: Callable[[str], str] = plain,
        object_to: Callable[[str, Mentioned], list[Objection]] = objections,
        encoder: Any = None,
    ) -> None:
        self.model, self.settings, self.name = model, settings, name
        self.read, self.object_to = read, object_to
        self.encoder = encoder or Encoder(settings.max_length)
        self.labels: tuple[str, ...] = LABELS  # a two-way model has no contradict

    def scores(self, pairs: Sequence[tuple[str, str]], batch: int = 32) -> torch.Tensor:
        """Raw scores (pairs, 3), not calibrated. Pairs of similar length are run together; the
        order is kept.

        Sentences of a claim that address the judge are not read; see
        `workbench.verifier.plain`.
        """
        import torch

        encoded = self.encoder.pairs([(premise, self.read(claim)) for premise, claim in pairs])
        order = sorted(range(len(encoded)), key=lambda i: len(encoded[i][0]))
        scores_NK = torch.zeros(len(encoded), 3)
        with torch.inference_mode():
            while order:
                indices = order[-min(batch, max(1, TOKENS // len(encoded[order[-1]][0]))) :]
                scores_NK[indices] = logits(self.model, collate([encoded[i] for i in indices]))
                del order[-len(indices) :]
        return scores_NK

    def predict(self, pairs: Sequence[tuple[str, str]], batch: int = 32) -> list[Triple]:
        """Calibrated (support, contradict, neutral) of each (premise, claim); they add up to 1.

        Premise and claim together fill at most `settings.max_length` word pieces: the end of a
        longer premise is not read (`check` reads it in windows).
        """
        probabilities_NK = (
            (self.scores(pairs, batch) / self.settings.temperature).double().softmax(-1)
        )
        return [(p[0], p[1], p[2]) for p in probabilities_NK.tolist()]

    def check(self, claim: str, passages: Sequence[Passage | str]) -> Check:
        """One claim against all its passages; see `check_all`."""
        return self.check_all([(claim, passages)])[0]

    def check_all(
        self, claims: Sequence[tuple[str, Sequence[Passage | str]]], batch: int = 32
    ) -> list[Check]:
        """Each claim against its own passages, all in one run.

        A passage is read in windows of whole sentences. The window with the greatest p(support)
        or p(contradict) decides, so that unrelated windows have no effect (`POOLS` has another).
        A claim that a rule objects to (`workbench.verifier.mentions`) gets a p(support) below
        `Settings.split`. A claim without passages is neutral, and so is a claim that only
        addresses its judge (`workbench.verifier.plain`).
        """
        # claims often share their passages
        spans = cache(lambda text: windows(text, self.encoder, self.settings.window))
        mentioned = cache(lambda texts: Mentioned(texts))
        cut = [
            [] if is_order(claim) else self._windows(passages, spans) for claim, passages in claims
        ]
        pairs = [
            (window.premise, claim)
            for (claim, _), own_windows in zip(claims, cut, strict=True)
            for window in own_windows
        ]
        triples = iter(self.predict(pairs, batch))
        checks = [
            self._pool(own_windows, [next(triples) for _ in own_windows]) for own_windows in cut
        ]
        return [
            (
                self._object(
                    check, self.object_to(self.read(claim), mentioned(tuple(map(_whole, passages))))
                )
                if check.windows
                else check
            )
            for check, (claim, passages) in zip(checks, claims, strict=True)
        ]

    def label(self, check: Check | Triple, unsupported: Unsupported = "vague") -> str:
        """`correct`, `vague` or `wrong`; see `Settings` for the band, and `local_facts` for
        `unsupported`.
        """
        support, contradict = (
            (check.support, check.contradict) if isinstance(check, Check) else check[:2]
        )
        bounds = self.settings
        if support >= bounds.support and support >= contradict:
            return "correct"
        if unsupported == "wrong":
            return "wrong" if support < bounds.split else "vague"
        return "wrong" if contradict >= bounds.contradict and contradict > support else "vague"

    def is_close(self, check: Check) -> bool:
        """Whether p(support) is within `CLOSE` of the threshold of `correct`."""
        return check.windows > 0 and abs(check.support - self.settings.support) < CLOSE

    def _windows(
        self, passages: Sequence[Passage | str], spans: Callable[[str], list[tuple[int, int]]]
    ) -> list[Window]:
        cut: list[Window] = []
        for number, passage in enumerate(passages):
            title, text = (
                (passage.title, passage.text) if isinstance(passage, Passage) else ("", passage)
            )
            for start, end in spans(text):
                part = text[start:end]
                named = title and not part.startswith(title)
                cut.append(Window(number, start, end, f"{title}. {part}" if named else part))
        return cut

    def _pool(self, own_windows: Sequence[Window], triples: Sequence[Triple]) -> Check:
        if not own_windows:
            return Check(0.0, 0.0, 1.0)
        best = max(range(len(own_windows)), key=lambda i: max(triples[i][0], triples[i][1]))
        support, contradict = POOLS[self.settings.pool](triples)
        scale = max(1.0, support + contradict)
        support, contradict = support / scale, contradict / scale
        neutral, window = max(0.0, 1 - support - contradict), own_windows[best]
        return Check(
            support,
            contradict,
            neutral,
            passage=window.passage,
            span=(window.start, window.end),
            windows=len(own_windows),
        )

    def _object(self, check: Check, found: Sequence[Objection]) -> Check:
        support = min(check.support, OBJECTED * self.settings.split)
        neutral = check.neutral + check.support - support
        return (
            replace(check, support=support, neutral=neutral, objections=tuple(found))
            if found
            else check
        )


def _whole(passage: Passage | str) -> str:
    """The title and the text of a passage."""
    return f"{passage.title}. {passage.text}" if isinstance(passage, Passage) else passage


def windows(text: str, encoder: Encoder, size: int) -> list[tuple[int, int]]:
    """Spans of whole sentences of at most `size` word pieces, each beginning half a window after
    the one before it.

    A sentence longer than a window is cut into windows of its own. The spans cover every word of
    the text.
    """
    pieces = encoder.texts([text])[0].offsets
    if len(pieces) <= size:
        return [(pieces[0][0], pieces[-1][1])] if pieces else []
    units = _units(text, pieces, size)
    spans: list[tuple[int, int]] = []
    first = 0
    while first < len(units):
        last, filled = first, 0
        while last < len(units) and filled + units[last][2] <= size:
            filled += units[last][2]
            last += 1
        spans.append((units[first][0], units[last - 1][1]))
        if last == len(units):
            break
        step, passed = first, 0
        while step < last and passed < filled / 2:
            passed += units[step][2]
            step += 1
        first = step
    return spans


def _units(text: str, pieces: Sequence[tuple[int, int]], size: int) -> list[tuple[int, int, int]]:
    """Sentences as (start, end, word pieces), the longest cut into parts of `size` pieces."""
    ends = [*[end for _, end in sentences(text)][:-1], len(text)]
    units: list[tuple[int, int, int]] = []
    position = 0
    for end in ends:
        inside = []
        while position < len(pieces) and pieces[position][0] < end:
            inside.append(pieces[position])
            position += 1
        parts = [inside[i : i + size] for i in range(0, len(inside), size)]
        units += [(part[0][0], part[-1][1], len(part)) for part in parts]
    return units


def load_verifier(path: Path | str | None = None) -> Verifier:
    """Load the verifier in a folder that `workbench verifier train` wrote; without a path, the
    verifier that comes with the repository.

    Raises:
        WorkbenchError: the packaged weights are not installed, there is no verifier there, or it
        is for other base weights.
    """
    folder, settings = find_verifier(path)
    weights = expand(read_tensors(folder / ADAPTER))
    return Verifier(weights, settings, folder.name if path is not None else "local")


def find_verifier(path: Path | str | None = None) -> tuple[Path, Settings]:
    """The folder and the settings of a verifier, without loading its weights.

    Raises:
        WorkbenchError: as `load_verifier`, for all but weights that cannot be read.
    """
    base_folder()  # names a missing package first: whatever else is wrong comes after it
    folder = Path(path) if path is not None else SHIPPED
    try:
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
        settings = read_settings(card["settings"])
        base = card["base"]["sha256"]
        if not (folder / ADAPTER).exists():
            raise FileNotFoundError(folder / ADAPTER)
    except FileNotFoundError:
        raise WorkbenchError(
            f"{folder}: no verifier there: train one with `workbench verifier train --data"
            f" PAIRS.jsonl --out {folder}`, or have another judge: `--judge world` for the closed"
            " world, `--judge URL --model NAME` for an endpoint"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise WorkbenchError(
            f"{folder}/card.json is not that of a verifier ({error}): train it again"
        ) from None
    if base != BASE_SHA256:
        raise WorkbenchError(
            f"{folder} was trained on base weights {base[:12]}…, not on the packaged"
            f" {BASE_SHA256[:12]}…"
        )
    return folder, settings


def read_tensors(file: Path) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors: dict[str, torch.Tensor] = load_file(file)
    except SafetensorError as error:
        raise WorkbenchError(f"{file} cannot be read ({error}): train it again") from None
    return tensors


def read_settings(found: Mapping[str, Any]) -> Settings:
    names = {setting.name for setting in fields(Settings)}
    if set(found) != names:
        raise KeyError(f"settings {sorted(set(found) ^ names)}")
    return Settings(**found)
