"""Use another model as the verifier: an entailment classifier in a folder or on the hub.

    verifier = choose_verifier("cross-encoder/nli-deberta-v3-base")  # not calibrated
    # workbench verifier calibrate cross-encoder/nli-deberta-v3-base --data dev.jsonl --out FOLDER
    verifier = choose_verifier("FOLDER")  # with its temperature and thresholds

A model may have three classes (entailment, neutral, contradiction) or two (supported or not). The
order of the classes is read from `id2label`. Only safetensors weights are loaded, and no code of
the model is run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.types import WorkbenchError
from workbench.util.hub import check_no_pickle, from_disk_or_hub
from workbench.util.patterns import regex
from workbench.verifier.model import Encoder, Pairs
from workbench.verifier.reading import read_plain
from workbench.verifier.rows import LABELS, Row
from workbench.verifier.verifier import (
    ADAPTER,
    BATCH,
    Settings,
    Verifier,
    load_verifier,
    read_settings,
)

if TYPE_CHECKING:
    import torch
    from tokenizers import Encoding
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

MOST_PIECES = 512  # word pieces of a pair, unless the model allows fewer
NEVER = -1e4  # the score of the class that a two-way model lacks
SUPPORT = regex(
    r"entail(s|ed|ment)?|support(s|ed)?|attributable|consistent|factual|true|yes|correct|grounded"
)
CONTRADICT = regex(r"contradict(s|ed|ion|ory)?|refut(e|es|ed)|conflict(s|ing)?")
NEUTRAL = regex(r"neutral|nei|not ?enough ?info(rmation)?|irrelevant|unverifiable|baseless")
UNSUPPORTED = regex(
    r"(not|un|non|no|in)"
    r" ?(entail(s|ed|ment)?|support(s|ed)?|attributable|consistent|factual|true|grounded|correct)"
    r"|hallucinat(ed|ion)|false|no|rest|other"
)


def classes_of(names: Sequence[str], model: str) -> tuple[int, int | None, int]:
    """Return the columns of the classes (support, contradict, neutral) in a model's output.

    For a model with two classes, contradict is None, and neutral is the class other than support.

    Args:
        names: the model's class names in column order; common spellings are recognised.
        model: the model's name, for the error message.

    Raises:
        WorkbenchError: the names do not identify the classes, such as "LABEL_0".
    """
    kinds = [_kind(name) for name in names]
    column = {kind: kinds.index(kind) for kind in kinds if kinds.count(kind) == 1}
    if len(names) == 3 and {"support", "contradict", "neutral"} <= column.keys():
        return column["support"], column["contradict"], column["neutral"]
    rest = [column[kind] for kind in ("rest", "contradict", "neutral") if kind in column]
    if len(names) == 2 and "support" in column and rest:
        return column["support"], None, rest[0]
    raise WorkbenchError(
        f"'{model}' has the classes {', '.join(names)}, which do not identify the entailment class:"
        " name them in this order with --classes, as in --classes unsupported,supported or"
        " --classes contradiction,entailment,neutral"
    )


def _kind(name: str) -> str:
    plain = re.sub(r"[\W_]+", " ", name.casefold()).strip()
    kinds = {"rest": UNSUPPORTED, "support": SUPPORT, "contradict": CONTRADICT, "neutral": NEUTRAL}
    return next((kind for kind, pattern in kinds.items() if pattern.fullmatch(plain)), "")


@dataclass(frozen=True)
class Classifier:
    """A sequence classifier: its folder or hub name, its class names, and its revision on the hub.

    Example of `classes`, in column order: ("contradiction", "entailment", "neutral").
    """

    model: str  # a folder, or a name on the hub
    classes: tuple[str, ...]  # class names in column order
    revision: str = ""  # the hub's commit


class _WordPieces(Encoder):
    """Encode texts with the tokenizer of another model. Only the method `texts` works."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.pretrained = tokenizer

    def texts(self, texts: Sequence[str]) -> list[Encoding]:
        return self.pretrained(
            list(texts), add_special_tokens=False, return_offsets_mapping=True, verbose=False
        ).encodings


class NamedVerifier(Verifier):
    """A transformers classifier, used as the verifier.

    * A model with two classes has p(contradict) = 0. It labels a claim wrong only if there is an
      objection: a number or name that the evidence lacks.
    * The model reads a claim with a denial ("was not born") unchanged. The shipped verifier instead
      reads the denied statement ("was born").
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        classifier: Classifier,
        settings: Settings,
    ) -> None:
        self.classifier, self.columns = classifier, classes_of(classifier.classes, classifier.model)
        self.tokenizer = tokenizer
        super().__init__(model, settings, classifier.model, encoder=_WordPieces(tokenizer))
        self.read = read_plain
        self.labels = LABELS if self.columns[1] is not None else ("support", "neutral")

    def scores(self, pairs: Pairs) -> torch.Tensor:
        """Return the raw scores (number of pairs, 3), in the order of `LABELS`.

        Long premises are truncated. A class that the model lacks gets the score `NEVER`, which
        makes its probability 0.
        """
        import torch

        inputs = [(premise, self.preprocess(claim)) for premise, claim in pairs]
        # pairs of similar length share a batch, the longest first
        order = sorted(range(len(inputs)), key=lambda i: len(inputs[i][0]) + len(inputs[i][1]))
        scores_NK = torch.full((len(inputs), len(LABELS)), NEVER)
        with torch.inference_mode():
            while order:
                indices = order[-BATCH:]
                logits_NC = self._logits([inputs[i] for i in indices])  # (batch, classes)
                for label, column in enumerate(self.columns):
                    if column is not None:
                        scores_NK[indices, label] = logits_NC[:, column]
                del order[-len(indices) :]
        return scores_NK

    def _logits(self, pairs: Pairs) -> torch.Tensor:
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
        """Cut a claim to fewer than `longest` word pieces."""
        (pieces,) = self.encoder.texts([claim[: 20 * longest]])
        return claim if len(pieces.ids) < longest - 2 else claim[: pieces.offsets[longest - 3][1]]


def choose_verifier(name: str | Path | None) -> Verifier:
    """Load a verifier by name.

    Args:
        name: one of three: a folder with `adapter.safetensors`, which changes the weights of the
            packaged MiniLM; a folder that `workbench verifier calibrate` wrote; or a sequence
            classifier, as a folder or a name on the Hugging Face hub. None loads the shipped
            verifier.

    Raises:
        WorkbenchError: there is no such verifier, its classes are not recognised, or its weights
            are pickled.
    """
    folder = Path(name).expanduser() if name is not None else None
    if folder is None or (folder / ADAPTER).exists():
        return load_verifier(folder)
    card_path = folder / "card.json"
    if not card_path.is_file():
        local = folder.is_dir() or str(name).startswith((".", "/", "~"))
        if local and not (folder / "config.json").is_file():
            return load_verifier(folder)  # raises the error that names the missing file
        return load_named(str(folder) if folder.is_dir() else str(name))
    try:
        card = json.loads(card_path.read_text(encoding="utf-8"))
        settings, classifier = read_settings(card["settings"]), card["named"]
        model, classes = str(classifier["model"]), tuple(map(str, classifier["classes"]))
    except (ValueError, KeyError, TypeError) as error:
        raise WorkbenchError(
            f"{card_path} is not a verifier's card ({error}): write it again with `workbench"
            " verifier calibrate`"
        ) from None
    return load_named(model, classes, settings)


def load_named(
    model: str, classes: Sequence[str] = (), settings: Settings | None = None
) -> NamedVerifier:
    """Load a sequence classifier as a verifier.

    Args:
        model: a folder, or a name on the Hugging Face hub.
        classes: class names in column order; empty for the names in the model's config.
        settings: temperature and thresholds; None: 1 and .5, for a model that was not calibrated.

    Raises:
        WorkbenchError: there is no such model, its classes are not recognised, or its weights are
            pickled.
    """
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    try:
        config = from_disk_or_hub(AutoConfig.from_pretrained, model)
        by_number = sorted(config.id2label.items(), key=lambda item: int(item[0]))
        names = tuple(classes) or tuple(str(name) for _, name in by_number)
        classifier = Classifier(model, names, getattr(config, "_commit_hash", None) or "")
        classes_of(names, model)
        if len(names) != config.num_labels:
            raise WorkbenchError(
                f"'{model}' has {config.num_labels} classes, but --classes names {len(names)}:"
                " name each class"
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
            f"'{model}' has no fast tokenizer (tokenizer.json), which is needed to split long"
            " passages: name a model that has one"
        )
    import torch

    loaded = loaded.eval().requires_grad_(False).to("cuda" if torch.cuda.is_available() else "cpu")
    longest = min(
        MOST_PIECES,
        tokenizer.model_max_length,
        getattr(config, "max_position_embeddings", MOST_PIECES) - 2,
    )
    return NamedVerifier(loaded, tokenizer, classifier, settings or Settings(max_length=longest))


def with_known_labels(rows: Sequence[Row], verifier: Verifier) -> list[Row]:
    """Return the rows with only the labels that a verifier can predict.

    For a model with two classes, the label "contradict" is replaced by "neutral".
    """
    neutral = LABELS.index("neutral")
    known = {LABELS.index(name) for name in verifier.labels}
    return [row if row.label in known else replace(row, label=neutral) for row in rows]
