"""What scoring by segments costs (FoRAG, arXiv 2406.13779): one forward pass for all segments of
an answer beside one for each.

    python benchmarks/forag_cost.py --results benchmarks/results/forag_cost.json

The paper's subclaim version takes 67.7 % more training time than its holistic one, since every
segment is scored by a pass of its own. Here the same answers of the tiny policy are scored both
ways by the same model, in turns, for the six cells of table 2; a pass for a segment reads no
further than to its end. Both have to give the same values. What a model has learnt changes
nothing of its cost, so the head is random. `ratio` is the time of a pass for each over that of
one pass; `over_holistic` that of one pass over one pass for the whole answer.
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
BATCH = 32  # sequences of a forward pass, either way
APART = 1e-4  # most that a value may differ between the two ways

Answers = Sequence[tuple[Response, Claims]]


def answered(place: Bench, count: int, samples: int) -> Answers:
    """Sampled answers to two-facet questions, read for claims."""
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
    """The answers that have a segment, as ids."""
    rows = [
        unlabelled(response, segments(response, read, evaluation)) for response, read in answers
    ]
    return [scorer.encode(row) for row in rows if row.segments]


def together(scorer: Scorer, reads: Sequence[EncodedRow]) -> list[float]:
    """All segments of an answer from one pass."""
    import torch

    with torch.no_grad():
        parts = [
            scorer.logits(reads[start : start + BATCH]) for start in range(0, len(reads), BATCH)
        ]
        return torch.cat(parts).sigmoid().tolist()


def each(scorer: Scorer, reads: Sequence[EncodedRow]) -> list[float]:
    """A pass for each segment, up to its last token."""
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
    """By evaluation: both ways, and the evaluations, in turns, after one turn that does not
    count.
    """
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
    """The six cells, by evaluation and level."""
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
    parser.add_argument("--policy", help="a model's folder, in the place of the bench's own")
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
