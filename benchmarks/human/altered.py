"""Test the verifier on claims that people call supported, altered in one thing.

The alterations are a year by one, another number, another name, a name that the evidence lacks, or
exchanged roles. An altered claim must not be called correct. `whole` is the share of original
claims called correct: it shows what the rules cost. Each claim counts once, even with several
texts.

The claims with exchanged roles (`roles.tsv`: who did something to whom, or what happened when) were
written for this benchmark, in other words than their evidence. No rule detects them: they measure a
known gap of the verifier.
"""

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
from benchmarks.verifier.augment import NAME, exchange_name, exchange_number
from workbench.types import Passage
from workbench.verifier import Row, Verifier

YEAR = re.compile(r"(?<![\d,.$£€-])(1\d{3}|20[0-2]\d)(?![\d,]\d|s\b|-)")
EXCHANGED = Path(__file__).parent / "roles.tsv"
ROLES = "exchanged roles"
ABSENT = {  # new names by the number of words of the replaced name
    1: "Lund Weber Castell Halvorsen Tampere Coimbra Ostrava Paramaribo Larkspur".split(),
    2: ["Ada Lund", "Tomas Weber", "Irene Castell", "Bruno Halvorsen", "Clara Novak"],
}
Alter = Callable[[Pair, random.Random], str | None]


def another_year(pair: Pair, rng: random.Random) -> str | None:
    """Change a year that the claim shares with its evidence by one."""
    texts = _texts(pair)
    found = [match for match in YEAR.finditer(pair.claim) if match[0] in texts]
    if not found:
        return None
    match = rng.choice(found)
    year = int(match[0]) + rng.choice((-1, 1))
    return f"{pair.claim[: match.start()]}{year}{pair.claim[match.end() :]}"


def another_number(pair: Pair, rng: random.Random) -> str | None:
    """Replace a shared number, not a year, by one of similar size and format."""
    new = exchange_number(_row(pair), rng)
    return None if new is None or YEAR.sub("", new.claim) == YEAR.sub("", pair.claim) else new.claim


def another_name(pair: Pair, rng: random.Random) -> str | None:
    new = exchange_name(sorted(set(NAME.findall(_texts(pair)))) or ["Oslo"])(_row(pair), rng)
    return None if new is None else new.claim


def absent_name(pair: Pair, rng: random.Random) -> str | None:
    """Replace a name that the claim shares with its evidence by one that the evidence lacks."""
    texts = _texts(pair)
    found = [
        match
        for match in NAME.finditer(pair.claim)
        if match[0] in texts and len(match[0].split()) in ABSENT
    ]
    if not found:
        return None
    match = rng.choice(found)
    names = [name for name in ABSENT[len(match[0].split())] if name not in texts]
    return pair.claim[: match.start()] + rng.choice(names) + pair.claim[match.end() :]


KINDS: dict[str, Alter] = {
    "a year by one": another_year,
    "another number": another_number,
    "another name": another_name,
    "an absent name": absent_name,
}


def ways(verifier: Remembered) -> dict[str, Remembered]:
    """Return the verifier as it is, without rules about numbers and names, and with earlier
    pooling.

    The last form also has no rules, and pools windows by their greatest probabilities.
    """
    bare = Remembered(verifier, verifier.sha256, verifier.file.parent)
    bare.known, bare.object_to = verifier.known, lambda claim, evidence: []
    before = Remembered(bare, verifier.sha256, verifier.file.parent)
    before.known, before.object_to = verifier.known, bare.object_to
    before.settings = replace(verifier.settings, pool="max")
    return {"as it is": verifier, "without rules": bare, "and without a deciding window": before}


def measure(given: Mapping[str, Halved], verifier: Remembered) -> dict[str, Any]:
    """Return the results in all `ways`, by kind of alteration and half."""
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
    found[ROLES] = {HALVES[1]: _called(ways(verifier), exchanged_roles())}
    return found


def exchanged_roles() -> list[tuple[Pair, str]]:
    """Return the claims of `roles.tsv`, each with its evidence and its altered form."""
    with EXCHANGED.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        (Pair(row["claim"], (row["evidence"],), 0, row["claim"]), row["altered"]) for row in rows
    ]


def _called(judges: Mapping[str, Verifier], pairs: Sequence[tuple[Pair, str]]) -> dict[str, Any]:
    """Return the shares of altered and original claims called correct."""
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
