"""Measure a served GGUF model as the judge of facts, compared with the local verifier.

    python -m benchmarks.real.judge --slices FOLDER --gguf FILE [--pairs 12] [--seconds 600]

FOLDER has the data sets of `benchmarks/human_labels.py`. The claims are a seeded sample of their
held-out halves, half of them supported, and of the altered claims (`benchmarks/human/altered.py`),
each with its original. Their evidence is short, because a CPU reads few tokens a second. Three
judges decide on the same claims: the local verifier, the model, and both (the model is asked only
about claims that the verifier calls correct).

Each verdict is appended to a file in --cache, so an interrupted run resumes and sends no prompt
twice. The results have n and 95 % intervals of the measurements so far: bootstrap for balanced
accuracy, Wilson's for shares. A failure is no verdict: it is counted, and its claim is left out of
the model's figures. Seconds are the server's CPU seconds, which other processes change little.
"""

import argparse
import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.human import altered, faithful, stats, verdicts
from benchmarks.human.cache import Remembered, remembered
from workbench.judge import endpoint
from workbench.judge.batch import BatchJudge
from workbench.judge.logprobs import MOST
from workbench.policies.serve import Served, serve
from workbench.types import Claim, Claims, Passage, Question, Response
from workbench.util.jsonl import write_json
from workbench.verdicts import facts

RESULTS = Path(__file__).resolve().parents[1] / "results" / "real_judge.json"
HELD_OUT = verdicts.HALVES[1]
MOST_CHARACTERS = 1_200  # characters of evidence
QUESTION = "What do the materials say about this?"  # the data sets have claims, not questions
ALL = "all kinds"
JUDGES = ("local", "model", "both")
Row = dict[str, Any]


@dataclass(frozen=True)
class Item:
    """A claim to judge; `gold` says whether people call it supported."""

    set: str  # a data set, or a kind of alteration
    claim: str
    passages: tuple[Passage, ...]
    gold: bool
    group: str

    @property
    def key(self) -> str:
        texts = [self.set, self.claim, *(passage.text for passage in self.passages)]
        return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]


def sample(folder: Path, size: int, seed: int) -> list[Item]:
    """Return at most `size` claims of each data set and `size` pairs of each kind of alteration.

    The sets take turns, so that an interrupted run has some claims of each.
    """
    names = verdicts.EVIDENCE["one short text"]
    sets = {name: verdicts.SETS[name].read(folder) for name in verdicts.SETS}
    halved = verdicts.halves(sets, faithful.half)
    held = {name: [one for one in halved[name].pairs[HELD_OUT] if _short(one)] for name in names}
    columns: list[list[list[Item]]] = []
    originals = [pair for pairs in held.values() for pair in pairs if pair.label == 0]
    for kind, alter in altered.KINDS.items():
        both = [(pair, alter(pair, random.Random(f"{kind}-{pair.claim}"))) for pair in originals]
        columns.append(_pairs(kind, [(pair, text) for pair, text in both if text], size, seed))
    columns.append(_pairs(altered.ROLES, altered.exchanged_roles(), size, seed))
    for name, pairs in held.items():
        rng = random.Random(f"{seed}-{name}")
        supported = [pair for pair in pairs if pair.label == 0]
        rest = [pair for pair in pairs if pair.label != 0]
        drawn = [
            pair
            for some in (supported, rest)
            for pair in rng.sample(some, min(len(some), size // 2))
        ]
        rng.shuffle(drawn)
        columns.append([[_item(name, pair, pair.claim, pair.label == 0)] for pair in drawn])
    turns = zip_longest(*columns, fillvalue=())
    return list({item.key: item for turn in turns for some in turn for item in some}.values())


def _pairs(
    kind: str, given: Sequence[tuple[verdicts.Pair, str]], size: int, seed: int
) -> list[list[Item]]:
    first = {verdicts.same(pair.claim): (pair, text) for pair, text in given}  # each claim once
    rng = random.Random(f"{seed}-{kind}")
    drawn = rng.sample(sorted(first), min(len(first), size))
    return [
        [_item(kind, pair, pair.claim, True), _item(kind, pair, text, False)]
        for pair, text in map(first.__getitem__, drawn)
    ]


def _item(name: str, pair: verdicts.Pair, claim: str, gold: bool) -> Item:
    passages = tuple(
        one if isinstance(one, Passage) else Passage(str(n), "", one)
        for n, one in enumerate(pair.passages)
    )
    return Item(name, claim, passages, gold, pair.group)


def _short(pair: verdicts.Pair) -> bool:
    texts = [one.text if isinstance(one, Passage) else one for one in pair.passages]
    return sum(map(len, texts)) <= MOST_CHARACTERS


def local_labels(items: Sequence[Item], verifier: Remembered) -> list[tuple[str, float]]:
    checks = verifier.check_all([(item.claim, item.passages) for item in items])
    return [(verifier.label(check), check.support) for check in checks]


def ask(
    items: Sequence[Item], judge: BatchJudge, file: Path, cpu: Callable[[], float], until: float
) -> None:
    """Judge the items that `file` does not have, one at a time, and append each row to it."""
    check, done = facts(judge, informativeness=False), {row["key"] for row in read(file)}
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        for number, item in enumerate(items):
            if item.key in done:
                continue
            if time.monotonic() > until:
                return
            question = Question(item.key, QUESTION, passages=item.passages)
            response = Response(item.key, question, item.claim)
            before, began = cpu(), time.perf_counter()
            [checked] = check([(response, Claims((), (Claim(0, item.claim),)))])
            [verdict] = checked.verdicts
            row = {
                "key": item.key,
                "label": (verdict.label or "").removeprefix("hedged_") or None,
                "p": verdict.p,
                "error": verdict.error and verdict.error.kind,
                "asked": verdict.by == judge.name,
                "cpu": round(cpu() - before, 3),
                "wall": round(time.perf_counter() - began, 3),
                "tokens": checked.cost.tokens_in,
            }
            if verdict.error and verdict.error.stage == "judge":
                raise SystemExit(f"the server gives no reply: {verdict.error.message}")
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(f"{number + 1} of {len(items)}: {item.set}: {row}", file=sys.stderr)


def read(file: Path) -> list[Row]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def summarise(
    items: Sequence[Item], local: Sequence[tuple[str, float]], rows: Sequence[Row], seed: int
) -> dict[str, Any]:
    """Return the three judges' figures on the items that the model has judged so far."""
    known = {row["key"]: row for row in rows}
    judged = [
        (item, *own, known[item.key])
        for item, own in zip(items, local, strict=True)
        if item.key in known
    ]
    kinds = [*altered.KINDS, altered.ROLES]
    plain = [one for one in judged if one[0].set not in kinds]
    names = dict.fromkeys(one[0].set for one in plain)
    asked = [row for *_, row in judged if row["asked"]]
    return {
        "asked": len(asked),
        "in_declared_form": _share([row["error"] is None for row in asked]),
        "errors": {
            kind: sum(row["error"] == kind for row in asked)
            for kind in sorted({row["error"] for row in asked if row["error"]})
        },
        "cpu_seconds_per_claim": _quantiles([row["cpu"] for row in asked]),
        "prompt_tokens": _quantiles([row["tokens"] for row in asked]),
        "passed_on": _share([label == "correct" for _, label, *_ in judged]),
        "all_sets": _accuracies(plain, seed),
        "sets": {
            name: _accuracies([one for one in plain if one[0].set == name], seed) for name in names
        },
        "altered": {
            kind: _altered([one for one in judged if one[0].set in some], seed)
            for kind, some in {ALL: kinds, **{kind: [kind] for kind in kinds}}.items()
        },
    }


Judged = tuple[Item, str, float, Row]


def _called_correct(one: Judged) -> dict[str, bool]:
    """Return whether each judge calls a claim correct; judges without a verdict are left out."""
    _, label, _, row = one
    called = {"local": label == "correct"}
    if row["error"] is None:
        called["model"] = row["label"] == "correct"
    if label != "correct" or row["error"] is None:
        called["both"] = label == "correct" and row["label"] == "correct"
    return called


def _accuracies(judged: Sequence[Judged], seed: int) -> dict[str, Any]:
    """Return balanced accuracy of the label *correct*, and of p by AUROC, for each judge."""
    found: dict[str, Any] = {"n": len(judged)}
    for judge in JUDGES:
        some = [(one, called[judge]) for one in judged if judge in (called := _called_correct(one))]
        gold = np.array([one[0].gold for one, _ in some], dtype=bool)
        called_N = np.array([correct for _, correct in some], dtype=bool)
        groups = [one[0].group for one, _ in some]
        if len(set(gold.tolist())) < 2:
            continue
        accuracy = stats.interval(partial(stats.balanced, gold, called_N), groups, seed)
        found[judge] = {"n": len(some), "balanced_accuracy": accuracy}
        p = [one[2] if judge == "local" else one[3]["p"] for one, _ in some]
        if judge != "both" and None not in p:
            found[judge]["auroc"] = stats.interval(stats.auroc(gold, np.array(p)), groups, seed)
    return found


def _altered(judged: Sequence[Judged], seed: int) -> dict[str, Any]:
    """Return each judge's shares of altered and original claims called correct, and separation."""
    parts = {"altered": False, "original": True}
    shares = {
        name: _called([one for one in judged if one[0].gold == g]) for name, g in parts.items()
    }
    return {**shares, "separated": _accuracies(judged, seed)}


def _called(judged: Sequence[Judged]) -> dict[str, Any]:
    called = [_called_correct(one) for one in judged]
    return {judge: _share([one[judge] for one in called if judge in one]) for judge in JUDGES}


def _share(hits: Sequence[bool]) -> dict[str, Any]:
    return stats.wilson(sum(hits), len(hits))


def _quantiles(values: Sequence[float]) -> dict[str, float | None]:
    if not values:
        return {"median": None, "mean": None}
    return {"median": round(float(np.median(values)), 2), "mean": round(float(np.mean(values)), 2)}


def _cpu_of(server: Served) -> Callable[[], float]:
    import psutil

    process = psutil.Process(server.process.process.pid)

    def seconds() -> float:
        times = process.cpu_times()
        return float(times.user + times.system)

    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a GGUF model as the judge of facts.")
    parser.add_argument("--slices", type=Path, required=True)
    parser.add_argument("--gguf", type=Path, required=True)
    parser.add_argument("--name", help="name in the results; default: the file's")
    parser.add_argument("--pairs", type=int, default=12, help="claims per set, pairs per kind")
    parser.add_argument("--form", choices=("schema", "json"), default="schema")
    parser.add_argument("--only", nargs="+", default=[], help="judge only these sets or kinds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this time")
    parser.add_argument("--cache", type=Path, default=Path("runs/real_judge"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    until = time.monotonic() + chosen.seconds
    name = chosen.name or chosen.gguf.stem
    items = sample(chosen.slices, chosen.pairs, chosen.seed)
    local = local_labels(items, remembered(None, chosen.cache))
    file = chosen.cache / f"{name}-{chosen.form}.jsonl"
    options: dict[str, Any] = {"response_format": "schema"}
    if chosen.form == "json":
        options = {"logprobs": True, "top_logprobs": MOST}
    limits: dict[str, Any] = {"timeout": 1800, "reasks": 0, "retries": 0}
    try:
        if chosen.seconds:  # 0: only compute the figures again
            server = serve(str(chosen.gguf), port=0, name=name)
            try:
                judge = endpoint(server.url, name, extra=options, max_new_tokens=64, **limits)
                some = [item for item in items if not chosen.only or item.set in chosen.only]
                ask(some, judge, file, _cpu_of(server), until)
            finally:
                server.stop()
    finally:
        results = json.loads(chosen.results.read_text()) if chosen.results.exists() else {}
        results.setdefault("models", {})[f"{name}, {chosen.form}"] = {
            "form": chosen.form,
            "pairs": chosen.pairs,
            "seed": chosen.seed,
            "of": len(items),
            **summarise(items, local, read(file), chosen.seed),
        }
        write_json(chosen.results, results)


if __name__ == "__main__":
    main()
