"""Train a reward model on most questions and measure it on the held-out questions.

FoRAG and KLCF share this module.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from workbench.metrics.confidence import areas, in_order
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
        config: settings of the reward model and its training.
        rows: responses. Each has segments (sentences, or the whole text) with a target from 0 to 1.
        share: share of the questions to hold out, from 0 to 1; see `split_held_out`.
        base: folder or hub name of the model that is fine-tuned.
        out: folder to which the model and its metrics (`held_out.json`) are written.
        seed: seed of the split and of the training.
        measure: (model, training rows, held-out rows) -> metrics; None for the function `held_out`.

    Returns:
        "done", or "interrupted" if the user stopped the training. An interrupted training writes no
        metrics.
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
    """Split rows by question, and return (training rows, held-out rows).

    Questions are chosen at random. Questions whose titles share a name, such as "Ana Bo", are on
    the same side of the split. If these groups are so large that less than half of the wanted
    questions can be held out, shared names are ignored.

    Args:
        share: share of the questions to hold out, from 0 to 1. The number of questions is rounded.
            It may be smaller if questions share names.
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
        graph.add_edges_from((node, ("name", name)) for name in question.titles)
    return [
        {text for kind, text in group if kind == "question"}
        for group in connected_components(graph)
    ]


def held_out(scorer: Scorer, training: Sequence[Judged], rows: Sequence[Judged]) -> JsonObject:
    """Score held-out rows with a reward model, and return metrics of the scores, and counts.

    The metrics are those of `calibration`, over all segments (sentences, or whole texts). The
    counts are:

    * `rows`: number of scored rows
    * `segments`: number of segments in the scored rows
    * `too_long`: number of rows that exceed the model's context, and are not scored
    * `strangers`: number of scored rows about people who do not occur in the training rows

    Args:
        training: the rows that the reward model was trained on.
        rows: the held-out rows.
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
    """Return the number of rows about people who do not occur in the training rows.

    The people are the names in the titles of the questions. A row without names is not counted.
    """
    known = {name for row in training for name in row.question.titles}
    named = [row.question.titles for row in rows]
    return sum(bool(names) and known.isdisjoint(names) for names in named)


def calibration(pairs: Sequence[tuple[float, float]]) -> dict[str, float | None]:
    """Return metrics of (prediction, target) pairs with values in [0, 1].

    A metric is None if it is undefined, for example without pairs. A target above .5 has the binary
    label "supported".

    Returns:
        * `supported`: share of pairs with the label "supported"
        * `auc`: area under the ROC curve of the predictions, for the binary labels
        * `accuracy`: share of predictions with the right label, where above .5 means "supported"
        * `ece`: expected calibration error in ten bins (Guo et al., arXiv 1706.04599)
        * `squared_error`: mean squared difference between prediction and target
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
