"""Train a reward model on most questions and measure it on the held-out questions.

FoRAG and KLCF share this module.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from workbench.metrics.confidence import areas, in_order
from workbench.metrics.facets import facet_names
from workbench.training.reward_model import RewardModel, train_reward_model
from workbench.training.scorer import MODEL, Judged, Scorer, load_reward_model
from workbench.training.stage import Status
from workbench.types import JsonObject, Question
from workbench.util.jsonl import write_json
from workbench.verifier.calibrate import reliability

HELD_OUT = "held_out.json"  # file in the stage's folder: the metrics on held-out questions


def train_with_held_out(
    config: RewardModel,
    rows: Sequence[Judged],
    share: float,
    base: str,
    out: Path,
    *,
    seed: int,
    measure: Callable[[Scorer, Sequence[Judged], Sequence[Judged]], JsonObject] | None = None,
) -> Status:
    """Train a reward model on most questions, and measure it on the held-out questions.

    Args:
        rows: responses with segments and their targets.
        share: share of the questions to hold out, from 0 to 1; see `split_held_out`.
        base: folder or hub name of the model that the reward model is trained from.
        out: the stage's folder, for the model and the metrics (`held_out.json`).
        measure: (model, training rows, held-out rows) -> metrics; None: the function `held_out`.

    Returns:
        "done", or "interrupted" if the user stopped the training. Then nothing is measured.
    """
    training, testing = split_held_out(rows, share, seed)
    status = train_reward_model(config, training, base, out, seed=seed)
    if status == "done":
        scorer = load_reward_model(out / MODEL)
        write_json(out / HELD_OUT, (measure or held_out)(scorer, training, testing))
    return status


def split_held_out(
    rows: Sequence[Judged], share: float, seed: int
) -> tuple[list[Judged], list[Judged]]:
    """Return (training rows, held-out rows): at most `share` of the questions, rounded, held out.

    Questions whose titles share a name are on the same side of the split. If this would hold out
    less than half of `share`, the held-out questions are drawn at random instead.
    """
    questions = {row.question.id: row.question for row in rows}
    groups, wanted, held = _related(questions.values()), round(share * len(questions)), set[str]()
    for group in random.Random(f"held-out-{seed}").sample(groups, len(groups)):
        held |= group if len(held) + len(group) <= wanted else set()
    if len(held) < wanted / 2:
        # sorted by id, so that the split does not depend on the order of the rows
        held = set(random.Random(f"held-out-{seed}").sample(sorted(questions), wanted))
    return [row for row in rows if row.question.id not in held], [
        row for row in rows if row.question.id in held
    ]


def _related(questions: Iterable[Question]) -> list[set[str]]:
    """Group questions whose titles share a name, and return each group as a set of question ids.

    Questions without a common name are in one group if other questions link them.
    """
    from networkx import Graph, connected_components

    graph = Graph()  # of questions and names
    for question in sorted(questions, key=lambda question: question.id):
        node = ("question", question.id)
        graph.add_node(node)
        graph.add_edges_from((node, ("name", name)) for name in facet_names(question))
    return [
        {text for kind, text in group if kind == "question"}
        for group in connected_components(graph)
    ]


def held_out(scorer: Scorer, training: Sequence[Judged], rows: Sequence[Judged]) -> JsonObject:
    """Return metrics of a reward model on the held-out rows `rows`.

    These are the metrics of `calibration` over all segments, and counts:

    * `rows`, `segments`: scored rows, and their segments
    * `too_long`: rows that exceed the model's context and were not scored
    * `strangers`: scored rows about people that no training row is about
    """
    scored = [(row, values) for row, values in zip(rows, scorer.score(rows), strict=True) if values]
    pairs = [
        (value, segment.target)
        for row, values in scored
        for value, segment in zip(values, row.segments, strict=True)
    ]
    counts = {
        "rows": len(scored),
        "strangers": count_unknown_people(training, [row for row, _ in scored]),
        "too_long": len(rows) - len(scored),
        "segments": len(pairs),
    }
    return {**counts, **calibration(pairs)}


def count_unknown_people(training: Sequence[Judged], rows: Sequence[Judged]) -> int:
    """Return the number of rows whose titles name only people that no training row is about."""
    known = {name for row in training for name in facet_names(row.question)}
    named = [facet_names(row.question) for row in rows]
    return sum(bool(names) and known.isdisjoint(names) for names in named)


def calibration(pairs: Sequence[tuple[float, float]]) -> dict[str, float | None]:
    """Return metrics of pairs (prediction, target), both in [0, 1]. An undefined metric is None.

    Returns:
        * `supported`: the share of targets above .5
        * `auc` and `accuracy` for the binary label "target above .5"
        * `ece` (Guo et al., arXiv 1706.04599, ten bins) and `squared_error` against the targets
    """
    if not pairs:
        return dict.fromkeys(("supported", "auc", "accuracy", "ece", "squared_error"))
    values, targets = zip(*pairs, strict=True)
    count = len(pairs)
    # `auroc` is NaN if all targets have the same label
    _, auroc = areas(in_order(("", value, target > 0.5) for value, target in pairs))
    return {
        "supported": sum(target > 0.5 for target in targets) / count,
        "auc": float(auroc[0]) if auroc[0] == auroc[0] else None,
        "accuracy": sum((value > 0.5) == (target > 0.5) for value, target in pairs) / count,
        "ece": reliability(values, targets)["ece"],
        "squared_error": sum((value - target) ** 2 for value, target in pairs) / count,
    }
