"""A small SFT, DPO or iterative DPO that may kill itself: python -m tests.helpers.offline_run
POLICY OUT KIND [WHEN].
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.helpers.grpo_run import QUESTIONS, grade, kill_when
from workbench.train.dpo import DPO, train_dpo
from workbench.train.rounds import Rounds, dpo_rounds
from workbench.train.rows import Card, Example, Pair
from workbench.train.sft import SFT, train_sft
from workbench.train.stage import Job
from workbench.types import Feedback

FEW = {**SMALL, "batch": 4, "micro_batch": 2, "max_length": 64}
TUNED, PREFERRED = scaled(SFT(), **FEW), scaled(DPO(), **FEW)
CITIES = " Oslo| Rome| Lima| Cairo| Paris| Tokyo| Quito| Accra".split("|")
EXAMPLES = [
    Example(question, CITIES[n % 8], -1.0 if n % 3 == 2 else 1.0)
    for n, question in enumerate(QUESTIONS)
]
PAIRS = [Pair(question, CITIES[n % 8], " I don't know") for n, question in enumerate(QUESTIONS)]
ROUNDS = Rounds(rounds=2, samples=4, max_new_tokens=4, chunk=4, max_failed=0.9, dpo=PREFERRED)


def any_two(feedbacks: Sequence[Feedback], seed: int) -> tuple[list[Pair], Card]:
    """The longest answer over the shortest: what a policy of random weights gives enough of."""
    texts: dict[str, list[str]] = {}
    for feedback in feedbacks:
        texts.setdefault(feedback.response.question.id, []).append(feedback.response.text)
    best = {id: (max(all, key=len), min(all, key=len)) for id, all in texts.items()}
    rows = [
        Pair(q, *best[q.id])
        for q in QUESTIONS
        if len(best[q.id][0]) > len(best[q.id][1].strip()) > 0
    ]
    return rows, Card("any_two", len(texts), len(feedbacks), {"pair": len(rows)})


def train(kind: str, policy: str, out: Path) -> str:
    if kind == "sft":
        return train_sft(TUNED, EXAMPLES, policy, out, seed=1)
    if kind == "dpo":
        return train_dpo(PREFERRED, PAIRS, policy, out, seed=1)
    start = policy
    for stage in dpo_rounds(ROUNDS, QUESTIONS, grade, "m", any_two):
        folder = out / stage.name
        folder.mkdir(exist_ok=True)
        stage.run(Job(start, folder, 1))
        start = str(folder / "policy")
    return "done"


def main(policy: str, out: str, kind: str, moment: str = "") -> None:
    import torch

    torch.set_num_threads(1)
    if moment:
        kill_when(moment)
    Path(out).mkdir(exist_ok=True)
    print(train(kind, policy, Path(out)))


if __name__ == "__main__":
    main(*sys.argv[1:])
