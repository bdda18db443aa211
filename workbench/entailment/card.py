"""The card of a verifier, `card.json`, and its readable form, `README.md`: every number from its
own training.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench.entailment.calibrate import calibrate, fit_temperature, reliability
from workbench.entailment.evaluate import SAID, evaluate_verifier
from workbench.entailment.model import expand
from workbench.entailment.named import NamedVerifier, as_told, calibrated
from workbench.entailment.robustness import robustness
from workbench.entailment.rows import LABELS, WEIGHTS, Row, Split, read_rows
from workbench.entailment.slices import measure_slices
from workbench.entailment.verifier import OBJECTED, Verifier, load_verifier, read_tensors
from workbench.jsonl import write_json
from workbench.minilm import BASE, BASE_SHA256
from workbench.threads import use_threads

TEXT = Path(__file__).parent / "card.md"
MANY = 500  # dev rows; figures of fewer are rough
FEW = (
    "\n\n**It was calibrated and measured on {n} dev rows: too few for the figures below to mean"
    " much.**"
)
SLICES = """\
Partial support counts as not supported, irrelevant as neutral. `wice/claim` is whole web pages, the oracle chunks are the
parts that matter. "Support vs rest" is balanced accuracy at the threshold of the dev rows, {split}; beside it at .5. Most
claims of the Factcheck-GPT file occur in training beside other evidence: it is not a clean test. The overlap baseline has its
threshold chosen on the very rows it is measured on. Measured with `workbench.entailment.slices.measure_slices` on slices of the
data sets' own files."""
SHARE_ALIKE = (
    "snli_dev",
    "mnli_dev",
    "cad_nli",
    "fm2",
    "fm2_mismatch",
    "fever_symmetric",
    "wice",
    "wice_partial",
)
SHARED = """\
The weights here (`adapter.safetensors`) and this card are offered under
[CC BY-SA 4.0](https://creativecommons.org/licenses/by-sa/4.0/). The code that trains and reads them is Apache-2.0, and so
are, by their own card, the packaged weights that they are added to.

{shared:,} of the {n_train:,} training rows come from sources that are share-alike as a whole or in part:
{sources}.
Whether weights adapt the texts that they were trained on is unsettled, and is not decided here: should they, this is the
licence under which text under CC BY-SA 3.0 or 4.0 may be passed on. The table above names the authors. What was changed:
rows were chosen, split anew, joined and relabelled as the table says, and altered by `workbench.entailment.augment`. No text
of a source lies here. The web pages that WiCE and Factcheck-GPT quote as evidence keep the terms of their owners."""
OWN = """\
What these weights may be used for depends on the licences of the data that they were trained on: say it here. The code is
Apache-2.0, and so are the packaged weights that they are added to."""
TWO_WAY = """\
It tells supported from the rest alone: here, rows that are contradicted count as neutral, it never contradicts, and a claim is
wrong only where what is not supported counts as wrong."""
PEAK_ROWS = 512  # what the speed is measured on


def make_card(
    folder: Path, split: Split, model: Any, runs: Sequence[Mapping[str, Any]], threads: int
) -> dict[str, Any]:
    """Calibrate what lies in `folder` on the dev rows and measure it there. `model` is the one
    before compression; `runs` are the trainings that it comes from: their settings, `seconds`,
    and the `share` of each in the weights.

    The dev rows also fit the temperature and the band, so calibration is shown cross-fitted as
    well: on each half with what the other half fitted.
    """
    adapter, dev_rows = folder / "adapter.safetensors", split.held
    with use_threads(threads):
        plain = Verifier(expand(read_tensors(adapter)))
        verifier = Verifier(plain.model, calibrate(plain, dev_rows))
        before = evaluate_verifier(Verifier(model), dev_rows)["accuracy"]
        dev = evaluate_verifier(verifier, dev_rows)
    with use_threads(1):
        speed = evaluate_verifier(verifier, dev_rows[:PEAK_ROWS])["claims_per_second"]
        robust = robustness(verifier)
    return {
        "settings": asdict(verifier.settings),
        "base": {"name": BASE, "sha256": BASE_SHA256},
        "adapter": {
            "bytes": adapter.stat().st_size,
            "sha256": sha256(adapter),
            "rank": runs[0]["rank"],
        },
        "data": {
            name: {"file": path.name, "sha256": sha256(path)} for name, path in split.files.items()
        },
        "rows": {"train": len(split.rows), "dev": len(dev_rows), "by_source": _counts(split.rows)},
        "runs": list(runs),
        "before_compression": before,
        "dev": dev,
        "cross_fitted_ece": _cross_fitted(plain, dev_rows),
        "uncalibrated_ece": evaluate_verifier(plain, dev_rows)["calibration"]["ece"],
        "robustness": robust,
        "one_thread": {"claims_per_second": speed, "rows": min(PEAK_ROWS, len(dev_rows))},
    }


def calibrate_named(verifier: NamedVerifier, data: Path, out: Path, threads: int) -> dict[str, Any]:
    """Fit temperature and thresholds of a named model on the rows of `data` and measure it
    there; writes `card.json` and `README.md` into `out`, which is then the verifier's name.
    Returns the card."""
    rows = as_told(read_rows(data), verifier)
    with use_threads(threads):
        fitted = calibrated(verifier, rows)
        dev, raw = (
            evaluate_verifier(fitted, rows),
            evaluate_verifier(verifier, rows)["calibration"]["ece"],
        )
        robust, cross = robustness(fitted), _cross_fitted(verifier, rows)
    with use_threads(1):
        speed = evaluate_verifier(fitted, rows[:PEAK_ROWS])["claims_per_second"]
    named = verifier.named
    card = {
        "settings": asdict(fitted.settings),
        "named": {"model": named.model, "classes": list(named.classes), "revision": named.revision},
        "told": list(verifier.told),
        "data": {"data": {"file": data.name, "sha256": sha256(data)}},
        "rows": {"dev": len(rows)},
        "dev": dev,
        "cross_fitted_ece": cross,
        "uncalibrated_ece": raw,
        "robustness": robust,
        "one_thread": {"claims_per_second": speed, "rows": min(PEAK_ROWS, len(rows))},
    }
    out.mkdir(parents=True, exist_ok=True)
    write_card(out, card)
    return card


def remeasure(folder: Path, held: Sequence[Row], slices: Path, threads: int) -> dict[str, Any]:
    """What lies in `folder` as it judges now, its weights and thresholds as they are: its card
    and `slices.json` anew.
    """
    card: dict[str, Any] = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    verifier = load_verifier(folder)
    with use_threads(threads):
        card |= {"dev": evaluate_verifier(verifier, held), "robustness": robustness(verifier)}
        write_json(folder / "slices.json", _rounded(measure_slices(verifier, slices)))
    with use_threads(1):
        speed = evaluate_verifier(verifier, held[:PEAK_ROWS])["claims_per_second"]
    card["one_thread"] = {"claims_per_second": speed, "rows": min(PEAK_ROWS, len(held))}
    write_card(folder, card)
    return card


def _cross_fitted(plain: Any, dev_rows: Sequence[Row]) -> float:
    import torch

    scores_NK = plain.scores([(row.premise, row.claim) for row in dev_rows]).double()
    gold_N = torch.tensor([row.label for row in dev_rows])
    halves = [torch.arange(start, len(dev_rows), 2) for start in (0, 1)]
    confidence: list[float] = []
    right: list[bool] = []
    for fitted, measured in (halves, halves[::-1]):
        top = (
            (scores_NK[measured] / fit_temperature(scores_NK[fitted], gold_N[fitted]))
            .softmax(-1)
            .max(-1)
        )
        confidence += top.values.tolist()
        right += (top.indices == gold_N[measured]).tolist()
    ece: float = reliability(confidence, right)["ece"]
    return ece


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    """`card.json`, and `README.md` from it; `tries.json` and `slices.json`, where they lie in
    the folder, are shown too.
    """
    write_json(folder / "card.json", _rounded(card))
    text = card_text(card, _extra(folder / "tries.json"), _extra(folder / "slices.json"))
    (folder / "README.md").write_text(text, encoding="utf-8")


def _extra(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def card_text(
    card: Mapping[str, Any],
    tries: Sequence[Mapping[str, Any]] = (),
    slices: Sequence[Mapping[str, Any]] = (),
) -> str:
    if "named" in card:
        return _named_text(card)
    settings, runs = card["settings"], card["runs"]
    shared = {
        source: count
        for source, count in card["rows"]["by_source"].items()
        if source in SHARE_ALIKE
    }
    values = {
        "licence": "cc-by-sa-4.0" if shared else "other",
        "licence_text": (
            SHARED.format(
                shared=sum(shared.values()),
                n_train=card["rows"]["train"],
                sources=", ".join(shared),
            )
            if shared
            else OWN
        ),
        "n_train": card["rows"]["train"],
        "n_dev": card["rows"]["dev"],
        "megabytes": card["adapter"]["bytes"] / 1e6,
        "rank": card["adapter"]["rank"],
        "kept": (
            f"the mean change of {len(runs)} trainings"
            if len(runs) > 1
            else f"{runs[0]['keep']:.0%} of the change"
        ),
        "base": card["base"]["name"],
        "base_hash": card["base"]["sha256"],
        "made": _made(runs, card["data"]),
        "wrong": 1 - card["dev"]["accuracy"],
        "before": card["before_compression"],
        "sources": _table(
            ("source", "training rows", "weight"),
            [
                (source, count, runs[0]["weights"].get(source, 1))
                for source, count in card["rows"]["by_source"].items()
            ],
        ),
        "tries": _listed(tries) or "No other settings were tried.",
        "slices": (
            f"{_listed(slices)}\n\n{SLICES.format(split=settings['split'])}"
            if slices
            else "None were measured."
        ),
    }
    return TEXT.read_text(encoding="utf-8").format(
        **values, **_measured(card), settings=settings, objected=OBJECTED
    )


def _named_text(card: Mapping[str, Any]) -> str:
    """The card of a verifier that was not trained here."""
    named = card["named"]
    values = {
        "name": named["model"],
        "classes": ", ".join(named["classes"]),
        "names": ",".join(named["classes"]),
        "revision": f", revision {named['revision'][:12]}" if named["revision"] else "",
        "n_dev": card["rows"]["dev"],
        "data": card["data"]["data"]["file"],
        "two_way": TWO_WAY if card["told"] != list(LABELS) else "",
    }
    text = TEXT.with_name("named.md").read_text(encoding="utf-8")
    return text.format(**values, **_measured(card), settings=card["settings"], objected=OBJECTED)


def _measured(card: Mapping[str, Any]) -> dict[str, Any]:
    """What every card says of the dev rows."""
    dev, robust = card["dev"], card["robustness"]
    return {
        "accuracy": dev["accuracy"],
        "balanced": dev["balanced_accuracy"],
        "support": dev["support"]["balanced_accuracy"] or math.nan,
        "auroc": dev["support"]["auroc"] or math.nan,
        "ece": dev["calibration"]["ece"],
        "ece_cross": card["cross_fitted_ece"],
        "ece_raw": card["uncalibrated_ece"],
        "claims": card["one_thread"]["claims_per_second"],
        "speed_rows": card["one_thread"]["rows"],
        "by_source": _measures("source", dev["by_source"]),
        "by_class": _table(
            ("class", "n", "recall", "precision"),
            [
                (name, cell["n"], cell["recall"], cell["precision"])
                for name, cell in dev["by_class"].items()
            ],
        ),
        "confusion": _table(
            ("gold \\ said", *LABELS),
            [(gold, *counts.values()) for gold, counts in dev["confusion"].items()],
        ),
        "labels": _table(
            ("gold \\ label", *SAID),
            [(gold, *counts.values()) for gold, counts in dev["labels"].items()],
        ),
        "bins": _table(
            ("confidence", "n", "mean confidence", "share right"),
            [
                (
                    f"{row['low']:.1f}–{row['high']:.1f}",
                    row["n"],
                    row["confidence"],
                    row["accuracy"],
                )
                for row in dev["calibration"]["bins"]
            ],
        ),
        "by_length": _measures("premise", dev["by_length"]),
        "by_negation": _measures("claim", dev["by_negation"]),
        "robustness": _table(
            (
                "change",
                "n",
                "mean change of p(support)",
                "greatest",
                "label flipped",
                "toward support",
            ),
            [
                (
                    name,
                    cell["n"],
                    cell["mean_change"],
                    cell["max_change"],
                    cell["flipped"],
                    cell["toward_support"],
                )
                for name, cell in robust.items()
                if isinstance(cell, Mapping)
            ],
        ),
        "robust_claims": robust["claims"],
        "robust_accuracy": robust["accuracy"],
        "few": FEW.format(n=card["rows"]["dev"]) if card["rows"]["dev"] < MANY else "",
    }


def _made(runs: Sequence[Mapping[str, Any]], files: Mapping[str, Mapping[str, str]]) -> str:
    """The commands that make it, how long they took, and their settings."""
    data = " ".join(f"--{name} {file['file']}" for name, file in files.items())
    lines = [
        f"    workbench verifier train {data} --out RUN{n} {_options(run)}"
        for n, run in enumerate(runs, start=1)
    ]
    if len(runs) > 1:
        shares = " ".join(f"--share {run['share']:.2g}" for run in runs)
        names = " ".join(f"RUN{n}" for n in range(1, len(runs) + 1))
        lines.append(f"    workbench verifier merge {names} {data} --out FOLDER {shares}")
    minutes = " and ".join(f"{run['seconds'] / 60:.0f}" for run in runs)
    fields = [name for name in runs[0] if name not in (*_OPTIONS, *_APART)]
    common = ", ".join(
        f"{name} {' and '.join(dict.fromkeys(str(run[name]) for run in runs))}" for name in fields
    )
    return "\n".join(
        [
            *lines,
            "",
            f"in {minutes} minutes, with other work on the machine. Other settings: {common}.",
        ]
    )


_OPTIONS = ("epochs", "lr", "dropout", "seed", "threads")
_APART = ("weights", "seconds", "share", "save_every")


def _options(run: Mapping[str, Any]) -> str:
    """Those of the command line, and the weights of sources that are not the usual ones."""
    changed = {
        source: weight for source, weight in run["weights"].items() if WEIGHTS.get(source) != weight
    }
    return " ".join(
        [f"--{name} {run[name]}" for name in _OPTIONS]
        + [f"--weight {source}={w}" for source, w in changed.items()]
    )


def _measures(name: str, cells: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        (
            key,
            c["n"],
            c["accuracy"],
            c["balanced_accuracy"],
            c["support"]["balanced_accuracy"],
            c["support"]["auroc"],
        )
        for key, c in cells.items()
    ]
    return _table(
        (name, "n", "accuracy", "balanced", "support vs rest", "AUROC of p(support)"), rows
    )


def _listed(rows: Sequence[Mapping[str, Any]]) -> str:
    return _table(tuple(rows[0]), [tuple(row.values()) for row in rows]) if rows else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *[[_cell(value) for value in row] for row in rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def _counts(rows: Sequence[Row]) -> dict[str, int]:
    return dict(sorted(Counter(row.source for row in rows).items()))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    return round(value, 5) if isinstance(value, float) else value
