"""Claims that people call supported, altered in one thing: a year by one, another number,
another name, two roles exchanged.

What the evidence says is then something else, and none of them may be called correct. `whole` is
how many of the claims are called correct as they stand: what the rules cost. Each claim counts
once, however many texts it comes with. Roles are exchanged in claims of our own (`turned.tsv`):
when and where something happened ("life"), and who did it to whom ("deed"). They were written
before they were judged, and the rules were mended by what they showed, those of `NEW` too.
`first` in that file is whether a new one was called correct when it was first judged, by rules
that had not seen it. Those of `HELD` were written by somebody who had not seen the rules, in
other words than their evidence, and no rule was mended by them.
"""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.human import stats
from benchmarks.human.cache import Remembered
from benchmarks.human.verdicts import HALVES, Halved, Pair, same
from workbench.entailment import Row, Verifier
from workbench.entailment.augment import NAME, exchange_name, exchange_number
from workbench.types import Passage

YEAR = re.compile(r"(?<![\d,.$£€-])(1\d{3}|20[0-2]\d)(?![\d,]\d|s\b|-)")
TURNED = Path(__file__).parent / "turned.tsv"
NEW, HELD = "new", "held"
Alter = Callable[[Pair, random.Random], str | None]


def another_year(pair: Pair, rng: random.Random) -> str | None:
    """One year of the claim that its evidence has, off by one."""
    texts = _texts(pair)
    found = [match for match in YEAR.finditer(pair.claim) if match[0] in texts]
    if not found:
        return None
    match = rng.choice(found)
    return f"{pair.claim[: match.start()]}{int(match[0]) + rng.choice((-1, 1))}{pair.claim[match.end() :]}"


def another_number(pair: Pair, rng: random.Random) -> str | None:
    """Another number of the same size and look, of one that the evidence has and that is no
    year.
    """
    new = exchange_number(_row(pair), rng)
    return None if new is None or YEAR.sub("", new.claim) == YEAR.sub("", pair.claim) else new.claim


def another_name(pair: Pair, rng: random.Random) -> str | None:
    new = exchange_name(sorted(set(NAME.findall(_texts(pair)))) or ["Oslo"])(_row(pair), rng)
    return None if new is None else new.claim


KINDS: dict[str, Alter] = {
    "a year by one": another_year,
    "another number": another_number,
    "another name": another_name,
}


def ways(verifier: Remembered) -> dict[str, Remembered]:
    """The verifier as it is, without the rules about numbers, names and roles, and as it was
    when windows were pooled by their greatest probabilities too."""
    bare = Remembered(verifier, verifier.sha256, verifier.file.parent)
    bare.known, bare.object_to = verifier.known, lambda claim, evidence: []
    before = Remembered(bare, verifier.sha256, verifier.file.parent)
    before.known, before.object_to = verifier.known, bare.object_to
    before.settings = replace(verifier.settings, pool="max")
    return {"as it is": verifier, "without rules": bare, "and without a deciding window": before}


def measure(given: Mapping[str, Halved], verifier: Remembered) -> dict[str, Any]:
    """By kind and half of the claims, in all `ways`."""
    found: dict[str, Any] = {}
    for kind, alter in KINDS.items():
        for name in HALVES:
            whole = [
                pair for halved in given.values() for pair in halved.pairs[name] if pair.label == 0
            ]
            both = [(pair, alter(pair, random.Random(f"{kind}-{pair.claim}"))) for pair in whole]
            found.setdefault(kind, {})[name] = _called(
                ways(verifier), [(pair, text) for pair, text in both if text]
            )
    for kind in ("life", "deed"):
        for name in (*HALVES, NEW, HELD):
            found.setdefault(f"roles exchanged: {kind}", {})[name] = _called(
                ways(verifier), turned(name, kind)
            )
        found[f"roles exchanged: {kind}"][NEW]["first"] = at_first(kind)
    return found


def turned(name: str, kind: str) -> list[tuple[Pair, str]]:
    return [
        (Pair(row["claim"], (row["evidence"],), 0, row["claim"]), row["turned"])
        for row in _rows(name, kind)
    ]


def at_first(kind: str) -> dict[str, Any]:
    """How many of the new claims were called correct when they were first judged."""
    marks = [row["first"] == "1" for row in _rows(NEW, kind)]
    return stats.wilson(sum(marks), len(marks))


def _rows(name: str, kind: str) -> list[dict[str, str]]:
    with TURNED.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row for row in rows if (row["half"], row["kind"]) == (name, kind)]


def _called(judges: Mapping[str, Verifier], pairs: Sequence[tuple[Pair, str]]) -> dict[str, Any]:
    """How many of the altered claims, and of the claims as they stand, are called correct."""
    claims = {
        "altered": [replace(pair, claim=text) for pair, text in pairs],
        "whole": [pair for pair, _ in pairs],
    }
    named = [same(pair.claim) for pair, _ in pairs]
    return {
        name: {way: stats.once_each(named, _correct(one, some)) for way, one in judges.items()}
        for name, some in claims.items()
    }


def _correct(verifier: Verifier, pairs: Sequence[Pair]) -> list[bool]:
    checks = verifier.check_all([(pair.claim, pair.passages) for pair in pairs])
    return [verifier.label(check) == "correct" for check in checks]


def _row(pair: Pair) -> Row:
    return Row(_texts(pair), pair.claim, pair.label)


def _texts(pair: Pair) -> str:
    return " ".join(
        f"{one.title}. {one.text}" if isinstance(one, Passage) else one for one in pair.passages
    )
