"""Read labelled pairs from the files of public data sets, which never train a verifier."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.types import WorkbenchError
from workbench.verifier.rows import LABELS, Row

STANCES = {
    stance: label
    for label, stances in {
        "support": ("supported", "SUPPORTS", "completely-support", "Fully attributable"),
        "neutral": (
            "not_supported",
            "partially_supported",
            "irrelevant",
            "partially-support",
            "Not fully attributable",
            "Generic",
        ),
        "contradict": ("REFUTES", "refute"),
    }.items()
    for stance in stances
}


def wice(path: Path) -> Iterator[tuple[str, str, str]]:
    """WiCE (arXiv 2303.01432): the sentences of a page or an oracle chunk, and a claim that cites
    it.
    """
    for row in json_lines(path):
        yield " ".join(row["evidence"]), row["claim"], row["label"]


def factcheck_gpt(path: Path) -> Iterator[tuple[str, str, str]]:
    """Factcheck-GPT (arXiv 2311.09000), subtask 3: a piece of a web page and a model's claim."""
    for row in json_lines(path):
        yield row["evidence"], row["claim"], row["stance"]


def fool_me_twice(path: Path) -> Iterator[tuple[str, str, str]]:
    """Fool Me Twice (arXiv 2104.04725): page title with gold evidence, and a player's claim."""
    for row in json_lines(path):
        evidence = " ".join(piece["text"] for piece in row["gold_evidence"])
        yield f"{row['wikipedia_page']}. {evidence}", row["text"], row["label"]


def fever_symmetric(path: Path) -> Iterator[tuple[str, str, str]]:
    """FEVER-Symmetric (arXiv 1908.05267)."""
    for row in json_lines(path):
        yield row["evidence"], row["claim"], row["label"]


def begin(path: Path) -> Iterator[tuple[str, str, str]]:
    """BEGIN (arXiv 2105.00071): the knowledge shown to a dialogue model, and its reply."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield row["knowledge"], row["response"], row["begin_label"]


READERS: Mapping[str, Callable[[Path], Iterator[tuple[str, str, str]]]] = {
    "wice/claim.dev.jsonl": wice,
    "wice/oracle_chunks.claim.dev.jsonl": wice,
    "factcheck_gpt/subtask3_claim_evidence_stance.jsonl": factcheck_gpt,
    "fool_me_twice/dev.jsonl": fool_me_twice,
    "fever_symmetric/fever_symmetric_dev.jsonl": fever_symmetric,
    "begin/begin_test_wow.tsv": begin,
    "begin/begin_dev_cmu.tsv": begin,
}


def slice_rows(folder: Path, name: str) -> list[Row]:
    """Return the rows of one file of `READERS` under `folder`.

    Partial support and generic replies count as neutral.

    Raises:
        WorkbenchError: the file does not exist or has another form.
    """
    path = folder / name
    try:
        triples = list(READERS[name](path))
        return [
            Row(premise, claim, LABELS.index(STANCES[label]), name)
            for premise, claim, label in triples
        ]
    except FileNotFoundError:
        raise WorkbenchError(f"{path}: no such file: put the data set's own file there") from None
    except (KeyError, TypeError, ValueError) as error:
        raise WorkbenchError(
            f"{path} is not in its authors' form (at {error}): {READERS[name].__doc__}"
        ) from None


def json_lines(path: Path) -> list[Any]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]
