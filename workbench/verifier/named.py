"""Another verifier by name: a sequence classifier of transformers that tells entailment from the
rest, of a folder or the hub.

    verifier = choose_verifier("cross-encoder/nli-deberta-v3-base")  # not calibrated
    # workbench verifier calibrate cross-encoder/nli-deberta-v3-base --data dev.jsonl --out FOLDER
    verifier = choose_verifier("FOLDER")  # with its temperature and thresholds

Three-way models (entailment, neutral, contradiction, in any order) and two-way ones (supported
or not) are read by their own `id2label`. Weights are read from safetensors alone, and no code of
a model's own is run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.types import WorkbenchError
from workbench.util.hub import check_no_pickle, from_disk_or_hub
from workbench.verifier.rows import LABELS, Row
from workbench.verifier.verifier import ADAPTER, Settings, Verifier, load_verifier, read_settings

if TYPE_CHECKING:
    import torch

LONGEST = 512  # word pieces of a pair, where the model does not say less
NEVER = -1e4  # the score of a class that a two-way model does not know
SUPPORT = re.compile(
    r"entail(s|ed|ment)?|support(s|ed)?|attributable|consistent|factual|true|yes|correct|grounded"
)
CONTRADICT = re.compile(r"contradict(s|ed|ion|ory)?|refut(e|es|ed)|conflict(s|ing)?")
NEUTRAL = re.compile(r"neutral|nei|not ?enough ?info(rmation)?|irrelevant|unverifiable|baseless")
REST = re.compile(
    r"(not|un|non|no|in)"
    r" ?(entail(s|ed|ment)?|support(s|ed)?|attributable|consistent|factual|true|grounded|correct)"
    r"|hallucinat(ed|ion)|false|no|rest|other"
)


def classes_of(names: Sequence[str], model: str) -> tuple[int, int | None, int]:
    """The columns of support, of contradiction (None for a two-way model) and of the rest in a
    model's scores, by the names of its classes, whatever their order and spelling.

    Raises:
        WorkbenchError: the names do not say which is which, as "LABEL_0" does not.
    """
    kinds = [_kind(name) for name in names]
    column = {kind: kinds.index(kind) for kind in kinds if kinds.count(kind) == 1}
    if len(names) == 3 and {"support", "contradict", "neutral"} <= column.keys():
        return column["support"], column["contradict"], column["neutral"]
    rest = [column[kind] for kind in ("rest", "contradict", "neutral") if kind in column]
    if len(names) == 2 and "support" in column and rest:
        return column["support"], None, rest[0]
    raise WorkbenchError(
        f"'{model}' has the classes {', '.join(names)}, which do not say what is entailed: name"
        " them in this order with --classes, as in --classes unsupported,supported or --classes"
        " contradiction,entailment,neutral"
    )


def _kind(name: str) -> str:
    plain = re.sub(r"[\W_]+", " ", name.casefold()).strip()
    kinds = {"rest": REST, "support": SUPPORT, "contradict": CONTRADICT, "neutral": NEUTRAL}
    return next((kind for kind, pattern in kinds.items() if pattern.fullmatch(plain)), "")


@dataclass(frozen=True)
class Named:
    """A model that is named: from where, and what its classes are called, in their order."""

    model: str
    classes: tuple[str, ...]
    revision: str = ""  # the hub's commit


class _Pieces:
    """What `windows` asks of an encoder, by a model's own tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def texts(self, texts: Sequence[str]) -> list[Any]:
        return self.tokenizer(
            list(texts), add_special_tokens=False, return_offsets_mapping=True, verbose=False
        ).encodings


class NamedVerifier(Verifier):
    """A classifier of transformers as a verifier. One that tells supported from the rest alone
    never contradicts: its p(contradict) is 0, and a claim is wrong only where what is not
    supported counts as wrong."""

    def __init__(self, model: Any, tokenizer: Any, named: Named, settings: Settings) -> None:
        self.named, self.columns = named, classes_of(named.classes, named.model)
        self.tokenizer = tokenizer
        super().__init__(model, settings, named.model, encoder=_Pieces(tokenizer))
        self.labels = LABELS if self.columns[1] is not None else ("support", "neutral")

    def scores(self, pairs: Sequence[tuple[str, str]], batch: int = 32) -> torch.Tensor:
        """Raw scores (pairs, 3) in the order of `LABELS`; the end of a premise that is too long
        is not read.
        """
        import torch

        read = [(premise, self.read(claim)) for premise, claim in pairs]
        order = sorted(range(len(read)), key=lambda i: len(read[i][0]) + len(read[i][1]))
        scores_NK = torch.full((len(read), len(LABELS)), NEVER)
        with torch.inference_mode():
            while order:
                indices = order[-batch:]
                logits_NC = self._logits([read[i] for i in indices])
                for label, column in enumerate(self.columns):
                    if column is not None:
                        scores_NK[indices, label] = logits_NC[:, column]
                del order[-len(indices) :]
        return scores_NK

    def _logits(self, pairs: Sequence[tuple[str, str]]) -> torch.Tensor:
        longest = self.settings.max_length
        premises, claims = zip(
            *[(premise, self._cut(claim, longest // 2)) for premise, claim in pairs], strict=True
        )
        inputs = self.tokenizer(
            list(premises),
            list(claims),
            truncation="only_first",
            max_length=longest,
            padding=True,
            return_tensors="pt",
        )
        logits_NC: torch.Tensor = self.model(**inputs.to(self.model.device)).logits.float().cpu()
        return logits_NC

    def _cut(self, claim: str, longest: int) -> str:
        """A claim may fill half of a pair, no more."""
        (pieces,) = self.encoder.texts([claim[: 20 * longest]])
        return claim if len(pieces.ids) < longest - 2 else claim[: pieces.offsets[longest - 3][1]]


def choose_verifier(name: str | Path | None = None) -> Verifier:
    """The verifier that a name means: None for the one shipped; a folder of `workbench verifier
    train` or `calibrate`; a folder or a name on the hub of a sequence classifier, as its authors
    left it.

    Raises:
        WorkbenchError: there is none there, it is no classifier whose classes can be told, or
        its weights are a pickle.
    """
    folder = Path(name).expanduser() if name is not None else None
    if folder is None or (folder / ADAPTER).exists():
        return load_verifier(folder)
    card = folder / "card.json"
    if not card.is_file():
        local = folder.is_dir() or str(name).startswith((".", "/", "~"))
        if local and not (folder / "config.json").is_file():
            return load_verifier(folder)  # which says what is missing there
        return load_named(str(folder) if folder.is_dir() else str(name))
    try:
        found = json.loads(card.read_text(encoding="utf-8"))
        settings, named = read_settings(found["settings"]), found["named"]
        model, classes = str(named["model"]), tuple(map(str, named["classes"]))
    except (ValueError, KeyError, TypeError) as error:
        raise WorkbenchError(
            f"{card} is not that of a verifier ({error}): calibrate it again"
        ) from None
    return load_named(model, classes, settings)


def load_named(
    model: str, classes: Sequence[str] = (), settings: Settings | None = None
) -> NamedVerifier:
    """A sequence classifier of transformers as a verifier. What its classes are is asked first,
    of its configuration alone.

    Raises:
        WorkbenchError: there is no such model, its classes cannot be told, or its weights are a
        pickle.
    """
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    try:
        config = from_disk_or_hub(AutoConfig.from_pretrained, model)
        named = Named(
            model,
            tuple(classes) or _classes_in(config),
            getattr(config, "_commit_hash", None) or "",
        )
        classes_of(named.classes, model)
        if len(named.classes) != config.num_labels:
            raise WorkbenchError(
                f"'{model}' has {config.num_labels} classes, and {len(named.classes)} are named:"
                " name each"
            )
        if Path(model).is_dir():
            check_no_pickle(sorted(Path(model).glob("*.bin")))
        tokenizer = from_disk_or_hub(AutoTokenizer.from_pretrained, model)
        loaded = from_disk_or_hub(
            AutoModelForSequenceClassification.from_pretrained, model, use_safetensors=True
        )
    except (OSError, ValueError, ImportError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise WorkbenchError(
            f"no verifier '{model}': {reason}; name a folder of `workbench verifier`, or a sequence"
            " classifier (NLI or supported-or-not) with safetensors weights, as a folder or by its"
            " name on the hub"
        ) from error
    if not tokenizer.is_fast:
        raise WorkbenchError(
            f"'{model}' has no fast tokenizer, which says where its word pieces stand: save one in"
            " its folder"
        )
    import torch

    loaded = loaded.eval().requires_grad_(False).to("cuda" if torch.cuda.is_available() else "cpu")
    longest = min(
        LONGEST, tokenizer.model_max_length, getattr(config, "max_position_embeddings", LONGEST) - 2
    )
    return NamedVerifier(loaded, tokenizer, named, settings or Settings(max_length=longest))


def _classes_in(config: Any) -> tuple[str, ...]:
    return tuple(str(config.id2label[number]) for number in sorted(config.id2label, key=int))


def with_known_labels(rows: Sequence[Row], verifier: Verifier) -> list[Row]:
    """The rows with the labels that the verifier tells apart: to a two-way one what is
    contradicted is merely not supported.
    """
    neutral = LABELS.index("neutral")
    kept = {LABELS.index(name) for name in verifier.labels}
    return [row if row.label in kept else replace(row, label=neutral) for row in rows]
