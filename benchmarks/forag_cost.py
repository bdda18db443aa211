"""Measure the cost of scoring each segment of an answer (FoRAG, arXiv 2406.13779).

    python benchmarks/forag_cost.py --results benchmarks/results/forag_cost.json

The paper's subclaim version takes 67.7 % more training time than its holistic version, because each
segment needs its own pass. Here the same model scores the same answers of the tiny policy in two
ways: one forward pass for all segments, or a pass up to the end of each segment. The ways take
turns, for the six cells of table 2. Both must give the same values. The head is random, because
weights do not affect the cost.

`ratio` is the time of separate passes divided by that of one pass. `over_holistic` is the time of
one pass divided by that of one pass for the whole answer.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from workbench.methods.bench import Bench, bench
from workbench.methods.forag.config import TINY, Evaluation
from workbench.methods.forag.segments import segments, unlabelled
from workbench.policies.generate import generate
from workbench.runs.folder import versions
from workbench.training.actor import Actor
from workbench.training.loading import load_trainee
from workbench.training.scorer import EncodedRow, Scorer
from workbench.types import TWO_FACETS, Claims, Response
from workbench.util.jsonl import write_json
from workbench.util.threads import DEFAULT_THREADS, use_threads

EVALUATIONS: tuple[Evaluation, ...] = ("holistic", "sentence", "subclaim")
LEVELS = ("sequence", "token")
BATCH = 32  # sequences in a forward pass
APART = 1e-4  # maximum difference of a value between the two ways

Answers = Sequence[tuple[Response, Claims]]


def answered(place: Bench, count: int, samples: int) -> Answers:
    """Return sampled answers to two-facet questions, with their claims."""
    questions = place.questions("validation", [TWO_FACETS])[:count]
    policy = place.load(place.policy)
    most = TINY.ppo.sampling.max_new_tokens
    responses = generate(
        policy, questions, max_new_tokens=most, samples=samples, temperature=1.0, seed=0
    )
    return list(zip(responses, place.checks.extract(responses), strict=True))


def scorer_of(policy: str, level: str) -> Scorer:
    import torch

    actor = Actor(load_trainee(policy, lora_r=16, lora_alpha=32, seed=0, unsloth=False))
    torch.nn.init.normal_(actor.head.weight)
    actor.model.eval()
    return Scorer(actor, level)


def reads_of(scorer: Scorer, answers: Answers, evaluation: Evaluation) -> list[EncodedRow]:
    """Return the encoded answers that have at least one segment."""
    rows = [
        unlabelled(response, segments(response, read, evaluation)) for response, read in answers
    ]
    return [scorer.encode(row) for row in rows if row.segments]


def together(scorer: Scorer, reads: Sequence[EncodedRow]) -> list[float]:
    """Score all segments of an answer in one pass."""
    import torch

    with torch.no_grad():
        parts = [
            scorer.logits(reads[start : start + BATCH]) for start in range(0, len(reads), BATCH)
        ]
        return torch.cat(parts).sigmoid().tolist()


def each(scorer: Scorer, reads: Sequence[EncodedRow]) -> list[float]:
    """Score each segment in a pass of its own, up to its last token."""
    alone = [
        EncodedRow(read.ids[: places[-1] + 1], [places], [0.0])
        for read in reads
        for places in read.places
    ]
    return together(scorer, alone)


def seconds(score: Callable[[], list[float]]) -> tuple[float, list[float]]:
    began = time.perf_counter()
    values = score()
    return time.perf_counter() - began, values


def level_cells(scorer: Scorer, answers: Answers, rounds: int) -> dict[Evaluation, dict[str, Any]]:
    """Return the cell of each evaluation; all take turns, after an uncounted turn."""
    reads = {evaluation: reads_of(scorer, answers, evaluation) for evaluation in EVALUATIONS}
    took: dict[Evaluation, list[tuple[float, float]]] = {
        evaluation: [] for evaluation in EVALUATIONS
    }
    for _ in range(rounds + 1):
        for evaluation, own in reads.items():
            (one, first), (many, second) = (
                seconds(partial(together, scorer, own)),
                seconds(partial(each, scorer, own)),
            )
            assert max(abs(a - b) for a, b in zip(first, second, strict=True)) < APART
            took[evaluation].append((one, many))
    counted = {evaluation: times[1:] for evaluation, times in took.items()}
    return {
        evaluation: _cell(reads[evaluation], times, counted["holistic"])
        for evaluation, times in counted.items()
    }


def _cell(
    reads: Sequence[EncodedRow],
    times: Sequence[tuple[float, float]],
    whole: Sequence[tuple[float, float]],
) -> dict[str, Any]:
    one_s, each_s = (median(part) for part in zip(*times, strict=True))
    over = median(one / other for (one, _), (other, _) in zip(times, whole, strict=True))
    return {
        "answers": len(reads),
        "segments": sum(len(read.places) for read in reads),
        "one_pass_s": round(one_s, 4),
        "a_pass_each_s": round(each_s, 4),
        "ratio": round(median(many / one for one, many in times), 3),
        "over_holistic": round(over, 3),
    }


def measure(place: Bench, count: int, samples: int, rounds: int) -> dict[str, Any]:
    """Return the six cells, by evaluation and level."""
    answers = answered(place, count, samples)
    cells: dict[str, Any] = {}
    for level in LEVELS:
        found = level_cells(scorer_of(place.path(place.policy), level), answers, rounds)
        cells |= {f"{evaluation}, {level}": cell for evaluation, cell in found.items()}
    return cells


def show(cells: dict[str, Any]) -> None:
    print(
        f"{'':22}{'answers':>8}{'segments':>9}{'one pass':>10}{'each':>9}"
        f"{'ratio':>7}{'over holistic':>15}"
    )
    for name, c in cells.items():
        print(
            f"{name:22}{c['answers']:8}{c['segments']:9}{c['one_pass_s']:9.3f}s{c['a_pass_each_s']:8.3f}s"
            f"{c['ratio']:7.2f}{c['over_holistic']:15.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=64)
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=DEFAULT_THREADS)
    parser.add_argument("--policy", help="folder of a model; default: the bench's policy")
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    with use_threads(given.threads):
        place = bench("tiny").with_policy(given.policy)
        cells = measure(place, given.questions, given.samples, given.rounds)
    show(cells)
    if given.results:
        about = {
            "date": date.today().isoformat(),
            "threads": given.threads,
            "rounds": given.rounds,
            "versions": versions(),
        }
        write_json(given.results, {**about, "world_hash": place.hash, "cells": cells})


if __name__ == "__main__":
    main()
